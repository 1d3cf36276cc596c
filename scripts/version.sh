#!/bin/sh
# version.sh: the version of this tree. It is the newest release in CHANGELOG.md; a tree that
# is not the tagged one has its commit behind a plus sign, as semantic versions have it.
set -eu
cd "$(dirname "$0")/.."
release=$(sed -n 's/^## \([0-9][0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)
if git describe --tags --exact-match --match "v$release" >/dev/null 2>&1 && git diff --quiet HEAD; then
	echo "$release"
	exit
fi
commit=$(git rev-parse --short HEAD 2>/dev/null) || commit=unknown
git diff --quiet HEAD 2>/dev/null || commit="$commit.dirty"
echo "$release+g$commit"
