#!/usr/bin/env bash
# Compares the load driver with YCSB itself (site.ycsb:core 0.17.0 with the binding here)
# against one Redis on loopback, in turns, and prints medians of operations per
# CPU-second of the client. Needs Go, Maven, a JDK, and Redis (skerry install redis).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mvn -q -B -f "$here/pom.xml" package 1>&2
cd "$here/../.."
SKERRY_YCSB=$here/target go test -run='^$' -bench Redis -benchtime 5x ./test/oracle
