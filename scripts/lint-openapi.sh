#!/bin/sh
# Holds openapi/openapi.yaml and the golden documents of contract APIs against Redocly's recommended rules, warnings included, and has
# openapi-typescript make types of them that the TypeScript compiler takes. Needs node and npm.
set -eu
cd "$(dirname "$0")/.."
(cd tools && npm ci --silent --ignore-scripts)
bin=$PWD/tools/node_modules/.bin
"$bin/redocly" lint --extends=recommended-strict openapi/openapi.yaml openapi/testdata/*.golden.json
types=$(mktemp -d)
trap 'rm -rf "$types"' EXIT
for document in openapi/openapi.yaml openapi/testdata/*.golden.json; do
	"$bin/openapi-typescript" "$document" -o "$types/$(basename "$document").ts" >/dev/null
done
"$bin/tsc" --noEmit --strict "$types"/*.ts
echo 'The documents keep the rules, and their types compile.'
