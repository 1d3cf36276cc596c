#!/bin/bash
# conformance.sh DATABASE... runs the conformance suites, those of the databases that are
# named among them. They are in skerry's cache. NDB's runs where NDB was built.
set -uo pipefail
cd "$(dirname "$0")/.."

required=root,tun
for d; do required+=,$d; done
if bin/skerry install --list | awk '$1 == "mysql-ndb" && $2 == "-" { exit 1 }'; then
	required+=,mysql-ndb
else
	echo "mysql-ndb was not built (skerry install mysql-ndb --build): its suite is not run" >&2
fi
export SKERRY_REQUIRE=$required SKERRY_LONG=1

suites() { go tool -modfile=tools.mod gotestsum --format testname -- -count=1 -timeout 30m -run Conformance "$@"; }

# NDB mostly waits for nodes that restart one by one: it runs beside all others. Of those
# Cassandra and HBase, many large processes, come first and one at a time.
large=(skerry/internal/database/{cassandra,hbase})
ndb=skerry/internal/database/ndb
light=$(go list ./internal/database/... | grep -vxF "$(printf '%s\n' "$ndb" "${large[@]}")")
status=0
set -m # a process group of its own, which an interrupt of this is passed on to
suites "$ndb" &
set +m
beside=$!
trap 'kill -INT -- -$beside 2>/dev/null' EXIT
suites -p 1 "${large[@]}" || status=$?
# shellcheck disable=SC2086 # a word a package
suites -p 2 $light || status=$?
wait "$beside" || status=$?
exit $status
