#!/bin/sh
# Generates code and compiles contracts again, and fails when the result differs from what is there. Nothing is left changed.
set -eu
cd "$(dirname "$0")/.."
before=$(mktemp -d)
trap 'rm -rf gen contracts/artifacts; mv "$before/gen" gen; mv "$before/artifacts" contracts/artifacts; rmdir "$before"' EXIT
cp -Rp gen "$before/gen"
cp -Rp contracts/artifacts "$before/artifacts"
go generate ./gen
scripts/compile-contracts.sh
failed=
diff -r "$before/gen" gen >&2 || failed='make generate'
diff -r "$before/artifacts" contracts/artifacts >&2 || failed="${failed:+$failed and }make contracts"
if [ -n "$failed" ]; then
	echo "Generated files are out of date; run $failed and commit the result." >&2
	exit 1
fi
echo 'Generated files are up to date.'
