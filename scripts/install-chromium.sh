#!/bin/sh
# Installs Chromium when the machine has none, for the tests of the pages in a real browser. Where it may not install, it prints the line to type and fails.
set -eu

for name in chromium chromium-browser google-chrome google-chrome-stable; do
	if command -v "$name" >/dev/null 2>&1; then
		exit 0
	fi
done
ask() {
	printf 'Chromium is not installed. Install it with:\n\n    %s\n\n' "$1" >&2
	exit 1
}
if ! command -v apt-get >/dev/null 2>&1; then
	[ "$(uname -s)" != Darwin ] || ask 'brew install --cask chromium'
	ask 'the package manager of this machine: the package is called chromium'
fi
if [ "$(id -u)" = 0 ]; then
	as_root=
elif sudo -n true 2>/dev/null; then
	as_root='sudo -n'
else
	ask 'sudo scripts/install-chromium.sh'
fi
echo 'Installing Chromium' >&2
export DEBIAN_FRONTEND=noninteractive
options='-y -q --no-install-recommends'
# shellcheck disable=SC2086
$as_root apt-get install $options chromium fonts-dejavu-core >&2 2>/dev/null || {
	$as_root apt-get update -q >&2
	$as_root apt-get install $options chromium fonts-dejavu-core >&2
}
command -v chromium >/dev/null 2>&1 || {
	echo 'Chromium was installed, but there is no program called chromium.' >&2
	exit 1
}
