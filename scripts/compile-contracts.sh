#!/bin/sh
# Compiles contracts/src/*.sol into contracts/artifacts/*.json with the pinned compiler from npm. The output depends on the
# sources and the compiler alone, so `git diff contracts/artifacts` after a run tells whether the committed artifacts are current.
set -eu
solc_version=0.8.30
root=$(cd "$(dirname "$0")/.." && pwd)
tools=${PACTWIRE_TOOLS_DIR:-"${XDG_CACHE_HOME:-$HOME/.cache}/pactwire"}/solc-$solc_version
if [ ! -d "$tools/node_modules/solc" ]; then
	mkdir -p "$tools"
	npm install --silent --no-fund --no-audit --prefix "$tools" "solc@$solc_version"
fi
NODE_PATH="$tools/node_modules" exec node "$root/contracts/compile.js" "$root/contracts"
