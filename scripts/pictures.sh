#!/bin/bash
# pictures.sh: runs what the documentation shows, looks at every page, and keeps the pictures that
# pages of docs have; all others are left in dist/screens, to be looked at.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/dist/screens
rm -rf "$out"
mkdir -p "$out/runs"
bin/skerry install redis
for name in offices cut; do
	sed -n "/^cat > $name.yaml/,/^YAML$/p" docs/tutorial.md | sed '1d;$d' >"$out/$name.yaml"
done
for experiment in experiments/quickstart.yaml "$out/offices.yaml" "$out/cut.yaml"; do
	bin/skerry run "$experiment" --out "$out/runs"
done
(cd web && SKERRY_RUNS=$out/runs SKERRY_SCREENS=$out npx --no-install vitest run --config vitest.browser.ts test/screens.spec.ts)
cp "$out/report-quickstart-1400-light.png" docs/images/report.png
