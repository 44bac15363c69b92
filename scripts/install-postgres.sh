#!/bin/sh
# Installs the PostgreSQL server binaries when the machine has none. No system-wide cluster is created or started: Pactwire
# runs a private one of its own. Where it may not install, it prints the line to type and fails.
set -eu

found() {
	bindir=$(pg_config --bindir 2>/dev/null || true)
	for folder in "$bindir" /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin \
		/usr/pgsql-*/bin /usr/libexec/postgresql* /usr/local/pgsql/bin; do
		if [ -n "$folder" ] && [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then
			return 0
		fi
	done
	command -v initdb >/dev/null 2>&1 && command -v postgres >/dev/null 2>&1
}

ask() {
	printf 'PostgreSQL is not installed. Install it with:\n\n    %s\n\nor name a running server with PACTWIRE_DATABASE_URL.\n' "$1" >&2
	exit 1
}

if found; then
	exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
	case $(uname -s) in
	Darwin) ask 'brew install postgresql@17' ;;
	esac
	command -v dnf >/dev/null 2>&1 && ask 'sudo dnf install -y postgresql-server'
	command -v apk >/dev/null 2>&1 && ask 'sudo apk add postgresql'
	command -v pacman >/dev/null 2>&1 && ask 'sudo pacman -S --noconfirm postgresql'
	command -v zypper >/dev/null 2>&1 && ask 'sudo zypper install -y postgresql-server'
	ask 'see https://www.postgresql.org/download/'
fi
if [ "$(id -u)" = 0 ]; then
	as_root=
elif sudo -n true 2>/dev/null; then
	as_root='sudo -n'
else
	ask 'sudo scripts/install-postgres.sh'
fi
echo 'Installing PostgreSQL (binaries only, no system-wide cluster)' >&2
# Debian's package makes and starts a cluster unless its tools, installed before it, are told not to. The file is left alone
# where the machine's owner has written one.
config=/etc/postgresql-common/createcluster.conf
if [ ! -e "$config" ]; then
	$as_root mkdir -p "$(dirname "$config")"
	echo 'create_main_cluster = false' | $as_root tee "$config" >/dev/null
fi
export DEBIAN_FRONTEND=noninteractive
options='-y -q --no-install-recommends -o Dpkg::Options::=--force-confold'
# shellcheck disable=SC2086
$as_root apt-get install $options postgresql >&2 2>/dev/null || {
	$as_root apt-get update -q >&2
	$as_root apt-get install $options postgresql >&2
}
if ! found; then
	echo 'PostgreSQL was installed, but initdb and postgres are in none of the usual folders.' >&2
	exit 1
fi
