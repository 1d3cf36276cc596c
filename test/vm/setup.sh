#!/bin/sh
# Fetches what TestNetemInVM needs: QEMU, installed through apt, and the kernel that
# Debian builds for clouds, unpacked into .cache/vm and never installed.
# Quiet when there is nothing to do. Without root it says what to install.
set -eu
cd "$(dirname "$0")/../.."
cache=.cache/vm

if ! command -v qemu-system-x86_64 >/dev/null; then
	if [ "$(id -u)" -ne 0 ]; then
		echo "test/vm: QEMU is missing; as root: apt-get install --no-install-recommends qemu-system-x86" >&2
		exit 1
	fi
	echo "test/vm: installing QEMU"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends qemu-system-x86 >/dev/null
fi

if [ ! -e "$cache/kernel/boot" ]; then
	# Old lists may name a kernel that the archive has replaced.
	if [ "$(id -u)" -eq 0 ]; then apt-get update -qq; fi
	package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p')
	if [ -z "$package" ]; then
		echo "test/vm: apt knows no linux-image-cloud-amd64; as root: apt-get update" >&2
		exit 1
	fi
	echo "test/vm: unpacking $package into $cache"
	rm -rf "$cache"
	mkdir -p "$cache/part"
	# apt may download as a user of its own, who must be able to write here.
	(cd "$cache/part" && apt-get -o APT::Sandbox::User=root download -qq "$package")
	dpkg -x "$cache/part/$package"_*.deb "$cache/part/tree"
	mv "$cache/part/tree" "$cache/kernel" # whole or not at all
	rm -rf "$cache/part"
fi
