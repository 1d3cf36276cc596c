#!/bin/sh
# setup.sh build|demo|test|slow: install the system packages that a target needs and that are
# missing. Quiet when there is nothing to do. Without root it only says what to install.
set -eu

# program:package, one each
tests='node:nodejs npm:npm chromium:chromium dig:bind9-dnsutils ping:iputils-ping python3:python3 curl:curl gcc:gcc ld:binutils'
case "${1:-}" in
build) wanted='node:nodejs npm:npm' ;;
demo) wanted='' ;;
test) wanted=$tests ;;
slow) wanted="$tests qemu-system-x86_64:qemu-system-x86" ;;
*)
	echo "usage: $0 build|demo|test|slow" >&2
	exit 2
	;;
esac

PATH="$PATH:/usr/sbin:/sbin"
missing=''
for pair in $wanted; do
	command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
# The race detector and the linter of prose link with the C library.
case "$wanted" in
*gcc:gcc*) [ -e /usr/include/stdlib.h ] || missing="$missing libc6-dev" ;;
esac
for program in go git; do
	command -v "$program" >/dev/null 2>&1 || {
		echo "setup: $program is not on PATH; install it first (Go 1.26 or newer, see go.mod)" >&2
		exit 1
	}
done

# Databases are unpacked from Debian packages, which needs apt's package lists, unless
# Redis is there.
lists=$(find /var/lib/apt/lists -maxdepth 1 -name '*_Packages*' 2>/dev/null | head -n 1)
redis() { bin/skerry install --list --json 2>/dev/null | grep -q '"version": *"[^"]'; }
if [ "$(id -u)" != 0 ]; then
	if [ -n "$missing" ] || { [ -z "$lists" ] && ! redis; }; then
		echo "setup: not root, so nothing is installed here. As root, run:" >&2
		echo "  apt-get update${missing:+ && apt-get install -y --no-install-recommends$missing}" >&2
		exit 1
	fi
	exit 0
fi
if [ -n "$missing" ] || [ -z "$lists" ]; then
	echo "setup: apt-get update"
	apt-get update -qq
fi
if [ -n "$missing" ]; then
	echo "setup: installing$missing"
	# shellcheck disable=SC2086 # a list of words
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
