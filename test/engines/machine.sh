#!/bin/bash
# machine.sh NAME GROUP IMAGE SHARE: a pretended machine, until it is killed: process, mount, host-name, IPC, control-group and
# network namespaces of its own, and as root directory this machine's with an image over it, both below a layer
# that is its own. SHARE is seen by all machines under the same path, as a network file system would be.
set -eu
if [ $# -eq 4 ]; then
	for c in /sys/fs/cgroup/*/; do # version 1: a group in every controller
		[ -e "$c/cgroup.procs" ] && [ "$(basename "$c")" != unified ] || continue
		mkdir -p "$c/$2/$1"
		for f in cpuset.cpus cpuset.mems; do
			[ ! -e "$c/$f" ] || for d in "$c/$2" "$c/$2/$1"; do cat "$c/$f" >"$d/$f"; done
		done
		echo $$ >"$c/$2/$1/cgroup.procs"
	done
	exec unshare -n -m -u -i -C -p -f --kill-child --propagation private bash "$0" "$@" inside
fi
name=$1 image=$3 share=$4
dir=$(mktemp -d) # hidden below a mount that nobody else sees
rmdir "$dir"; dir=/mnt
mount -t tmpfs -o mode=755 tmpfs $dir
mkdir $dir/up $dir/work $dir/root $dir/share $dir/image
mount --bind "$share" $dir/share
cp -a "$image/." $dir/image
mount -t overlay overlay -o lowerdir=$dir/image:/,upperdir=$dir/up,workdir=$dir/work $dir/root
r=$dir/root
mount -t proc proc $r/proc
mount -t sysfs sysfs $r/sys
mount -t tmpfs tmpfs $r/sys/fs/cgroup
for c in cpu cpuacct cpuset memory devices freezer blkio pids; do
	mkdir $r/sys/fs/cgroup/$c
	mount -t cgroup -o $c cgroup $r/sys/fs/cgroup/$c || rmdir $r/sys/fs/cgroup/$c
done
mkdir $r/sys/fs/cgroup/systemd # which Slurm asks for
mount -t cgroup -o none,name=systemd cgroup $r/sys/fs/cgroup/systemd || true
mount --rbind /dev $r/dev
mount -t tmpfs tmpfs $r/run
mount -t tmpfs -o mode=1777 tmpfs $r/tmp
mount -t tmpfs -o mode=1777 tmpfs $r/var/tmp # or labs of this machine are taken for labs whose owner died
mkdir -p "$r$share"
mount --move $dir/share "$r$share"
hostname "$name"
ip link set lo up
cd $r
mkdir -p old
# Not chroot: a namespace that is entered from outside has its own root.
pivot_root . old
cd /
umount -l /old
trap : TERM
touch /run/up
while :; do sleep 3600 & wait; done # a shell takes leave of every process that loses its parent
