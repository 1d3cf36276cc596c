#!/bin/bash
# pictures.sh: runs what the documentation shows, looks at every page, and keeps the pictures that
# pages of docs have; all others are left in dist/screens, to be looked at.
# RUNS=FOLDER shows the runs that an earlier call left there, in place of new ones; ONLY=runs makes them and ends.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/dist/screens
runs=$(realpath --canonicalize-missing "${RUNS:-dist/runs}")
if [ -z "${RUNS:-}" ]; then
	rm -rf "$runs"
	mkdir -p "$runs"
	bin/skerry install redis
	for name in offices cut; do
		sed -n "/^cat > $name.yaml/,/^YAML$/p" docs/tutorial.md | sed '1d;$d' >"$runs/$name.yaml"
	done
	for experiment in experiments/quickstart.yaml "$runs/offices.yaml" "$runs/cut.yaml"; do
		bin/skerry run "$experiment" --out "$runs"
	done
	rm "$runs"/*.yaml
fi
[ "${ONLY:-}" != runs ] || exit 0
rm -rf "$out"
mkdir -p "$out"
(cd web && SKERRY_RUNS=$runs SKERRY_SCREENS=$out npx --no-install vitest run --config vitest.browser.ts test/screens.spec.ts)
cp "$out/report-quickstart-1400-light.png" docs/images/report.png
cp "$out/report-offices-1400-light.png" docs/images/offices.png
cp "$out/trial-cut-1400-light.png" docs/images/cut.png
