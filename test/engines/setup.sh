#!/bin/sh
# setup.sh unpacks what the tests of engines and of clusters need into .cache/engines: Slurm, munge and OpenSSH's server; and
# Docker. Quiet when there is nothing to do.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
tree=.cache/engines/tree
mkdir -p .cache/engines
"$here/unpack.sh" $tree slurmctld slurmd slurm-client munge openssh-server
for name in slurmd slurmctld slurmstepd; do # as Debian's alternatives do
	[ -e $tree/usr/sbin/$name ] || ln -s $name-wlm $tree/usr/sbin/$name
done
"$here/unpack.sh" .cache/engines/docker docker.io
[ -e .cache/engines/docker/usr/sbin/iptables ] || ln -s iptables-nft .cache/engines/docker/usr/sbin/iptables
