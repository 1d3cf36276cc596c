#!/bin/sh
# unpack.sh FOLDER PACKAGE...: unpacks Debian packages, and the packages that they depend on and this machine lacks,
# into FOLDER. Nothing is installed. FOLDER appears when it is complete. Quiet if FOLDER exists.
set -eu
folder=$1
shift
[ ! -e "$folder" ] || exit 0
if [ "$(id -u)" -eq 0 ]; then apt-get update -qq; fi
echo "test/engines: unpacking $* into $folder"
part=$folder.part
rm -rf "$part"
mkdir -p "$part/tree"
packages=$(apt-get install -s -qq --no-install-recommends "$@" | sed -n 's/^Inst \([^ ]*\).*/\1/p')
# apt may download as a user of its own, who cannot write here.
# shellcheck disable=SC2086 # a word a package
(cd "$part" && apt-get -o APT::Sandbox::User=root download -qq $packages)
for deb in "$part"/*.deb; do dpkg -x "$deb" "$part/tree"; done
# In a layer over a machine's root, a folder would hide the links /bin, /sbin and /lib.
for dir in bin sbin lib; do
	[ ! -d "$part/tree/$dir" ] || { mkdir -p "$part/tree/usr/$dir"; cp -a "$part/tree/$dir/." "$part/tree/usr/$dir"; rm -r "$part/tree/${dir:?}"; }
done
mv "$part/tree" "$folder"
rm -rf "$part"
