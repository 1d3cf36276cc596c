#!/bin/sh
# package.sh DIR ARCH PACKAGER...: static binaries for ARCH (amd64, arm64) in DIR, and packages
# of them (deb, rpm). The same commit and compiler give the same bytes. make web must have built web/dist.
set -eu
[ $# -ge 2 ] || {
	echo "usage: $0 DIR ARCH PACKAGER..." >&2
	exit 2
}
[ -e "$(dirname "$0")/../web/dist/report/report.html.gz" ] || {
	echo "$0: the front end is not built: run make web, which needs npm" >&2
	exit 1
}
mkdir -p "$1"
dir=$(cd "$1" && pwd)
arch=$2
shift 2
cd "$(dirname "$0")/.."
VERSION=${VERSION:-$(scripts/version.sh)}
MAINTAINER=${MAINTAINER:-"The Skerry maintainers <maintainers@skerry.invalid>"}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
STAGE=$(mktemp -d)
trap 'rm -rf "$STAGE"' EXIT
ARCH=$arch
export VERSION MAINTAINER SOURCE_DATE_EPOCH STAGE ARCH

programs="skerry hydra metad"
build() { # GOARCH FOLDER, as make build does, without what debuggers need
	mkdir -p "$2"
	GOARCH=$1 CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o "$2/" ./cmd/...
}
build "$arch" "$STAGE/bin"
for p in $programs; do cp "$STAGE/bin/$p" "$dir/${p}_${VERSION}_linux_$arch"; done
[ $# -gt 0 ] || exit 0

# Man pages and completion are the same for every processor. The programs that run here write them.
here=$STAGE/bin
if [ "$(go env GOHOSTARCH)" != "$arch" ]; then
	here=$STAGE/here
	build "$(go env GOHOSTARCH)" "$here"
fi
for p in $programs; do
	"$here/$p" man "$STAGE/man"
	for shell in bash zsh fish; do "$here/$p" completion "$shell" >"$STAGE/$p.$shell"; done
done
gzip -9n "$STAGE"/man/*
for packager; do go tool -modfile=tools.mod nfpm package -f packaging/nfpm.yaml -p "$packager" -t "$dir/"; done
