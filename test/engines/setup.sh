#!/bin/sh
# Fetches what the tests of engines need: Slurm, munge and OpenSSH's server as Debian has them, unpacked into .cache/engines and never
# installed. Quiet when there is nothing to do.
set -eu
cd "$(dirname "$0")/../.."
cache=.cache/engines
[ ! -e "$cache/tree/usr/sbin/slurmd" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then apt-get update -qq; fi
echo "test/engines: unpacking Slurm and OpenSSH into $cache"
rm -rf "$cache"
mkdir -p "$cache/part"
# What the packages depend on and this machine lacks comes along. apt may download as a user of its own,
# who must be able to write here.
packages=$(apt-get install -s -qq --no-install-recommends slurmctld slurmd slurm-client munge openssh-server | sed -n 's/^Inst \([^ ]*\).*/\1/p')
(cd "$cache/part" && apt-get -o APT::Sandbox::User=root download -qq $packages)
for deb in "$cache"/part/*.deb; do dpkg -x "$deb" "$cache/part/tree"; done
# As a layer over the machine's own files a folder would hide the links that these are there.
for dir in bin sbin lib; do
	[ ! -d "$cache/part/tree/$dir" ] || { mkdir -p "$cache/part/tree/usr/$dir"; cp -a "$cache/part/tree/$dir/." "$cache/part/tree/usr/$dir"; rm -r "$cache/part/tree/${dir:?}"; }
done
for name in slurmd slurmctld slurmstepd; do # as Debian's alternatives do
	[ -e "$cache/part/tree/usr/sbin/$name" ] || ln -s "$name-wlm" "$cache/part/tree/usr/sbin/$name"
done
mv "$cache/part/tree" "$cache/tree" # whole or not at all
rm -rf "$cache/part"
