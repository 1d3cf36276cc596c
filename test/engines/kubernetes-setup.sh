#!/bin/sh
# kubernetes-setup.sh FOLDER: makes what TestKubernetes needs, outside the repository: FOLDER/hyperkube, Kubernetes'
# programs in one, built from its module (some ten minutes), FOLDER/tree, Debian's etcd and containerd, and FOLDER/versitygw,
# a server that speaks S3.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
version=v1.34.3 staging=v0.34.3
if [ ! -e hyperkube ]; then
	mkdir -p build
	cp "$here/hyperkube.go.txt" build/main.go
	cd build
	export GOFLAGS="-trimpath -buildvcs=false -mod=mod" CGO_ENABLED=0
	[ -e go.mod ] || go mod init hyperkube
	go mod edit -go=1.24.0 -require "k8s.io/kubernetes@$version"
	# Its own go.mod has these modules in a folder beside it, as they were published.
	mod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	sed -n 's/^[[:space:]]*\(k8s.io\/[^ ]*\) => .*/\1/p' "$mod" | sort -u | while read -r path; do go mod edit -replace "$path=$path@$staging"; done
	go mod tidy
	stamps="" # without them a kubelet is refused
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		stamps="$stamps -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=34"
	done
	go build -ldflags "-s -w $stamps" -o hyperkube .
	mv hyperkube ..
	cd ..
	rm -rf build
fi
[ -e versitygw ] || (cd / && GOFLAGS=-mod=mod CGO_ENABLED=0 GOBIN="$OLDPWD" go install -trimpath -ldflags '-s -w' github.com/versity/versitygw/cmd/versitygw@v1.8.0)
"$here/unpack.sh" tree etcd-server containerd runc containernetworking-plugins
