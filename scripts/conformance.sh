#!/bin/bash
# conformance.sh runs the conformance suites of what make conformance installed, and of what
# is there though it is installed on request alone. All are in skerry's cache, or in PATH. Then a real Kubernetes and OpenTofu.
set -uo pipefail
cd "$(dirname "$0")/.."

required=root,tun
for d in $(bin/skerry wanted conformance); do required+=,$d; done
for d in $(bin/skerry wanted request); do
	if missing=$(bin/skerry install --list | grep -E "^$d .* not installed "); then
		echo "$missing: its suite is not run, and tests of it are against a stand-in at most" >&2
	else
		required+=,$d
	fi
done
export SKERRY_REQUIRE=$required SKERRY_LONG=1

suites() { go tool -modfile=tools.mod gotestsum --format testname -- -count=1 -timeout 30m -run 'Conformance|AgainstFakeServer' "$@"; }

# Some suites mostly wait for nodes that restart one by one: they run beside all others. Of those
# the ones of many large processes come first and one at a time.
waiting=$(bin/skerry wanted suites-waiting)
alone=$(bin/skerry wanted suites-alone)
light=$(go list ./internal/database/... | grep -vxF "$waiting"$'\n'"$alone")
status=0
# shellcheck disable=SC2086 # a word a package, here and below
{
	set -m # a process group of its own, which an interrupt of this is passed on to
	suites $waiting &
	set +m
	beside=$!
	trap 'kill -INT -- -$beside 2>/dev/null' EXIT
	suites -p 1 $alone || status=$?
	suites -p 2 $light || status=$?
}
wait "$beside" || status=$?

# A real Kubernetes on pretended machines. Its programs are built once, in some ten minutes.
kubernetes=${SKERRY_KUBERNETES:-$PWD/.cache/kubernetes}
{
	test/engines/setup.sh && test/engines/kubernetes-setup.sh "$kubernetes" &&
		SKERRY_KUBERNETES=$kubernetes SKERRY_REQUIRE=$required,slurm go tool -modfile=tools.mod gotestsum --format testname -- -count=1 -timeout 30m -run 'TestKubernetes$' ./test/engines
} || status=$?

# OpenTofu with the modules of deploy/tofu, as far as it goes without anybody's cloud. Its programs are built once, in a quarter of an hour.
tofu=${SKERRY_TOFU:-$PWD/.cache/tofu}
{
	test/engines/setup.sh && test/engines/tofu-setup.sh "$tofu" &&
		SKERRY_TOFU=$tofu SKERRY_REQUIRE=$required,slurm go tool -modfile=tools.mod gotestsum --format testname -- -count=1 -timeout 30m -run '^TestTofu' ./test/engines
} || status=$?
exit $status
