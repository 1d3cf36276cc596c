#!/usr/bin/env bash
# Compares the load driver with YCSB itself (site.ycsb:core 0.17.0 with the binding here)
# against one Redis on loopback, in turns, and prints JSON with medians of operations per
# CPU-second of the client. Needs Go, Maven, a JDK, and Redis (skerry install redis).
# Further arguments go to "skerry bench load" (--quick).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mvn -q -B -f "$here/pom.xml" package 1>&2
(cd "$here/../.." && go build -o "$build/skerry" ./cmd/skerry)
"$build/skerry" bench load --only redis --ycsb "$here/target" --json "$@"
