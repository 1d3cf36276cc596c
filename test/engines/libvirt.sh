#!/bin/bash
# libvirt.sh POOL: Debian's libvirt on a pretended machine, with a pool of disks in a folder. Its machines run as root and in no
# control groups of their own, which a pretended machine has not.
set -eu
mkdir -p /run/dbus /run/libvirt /etc/libvirt /var/lib/libvirt/{images,qemu,dnsmasq,boot,network} /var/cache/libvirt/qemu /var/log/libvirt/qemu /var/log/swtpm "$1"
printf 'user = "root"\ngroup = "root"\nsecurity_driver = "none"\nremember_owner = 0\ndynamic_ownership = 0\ncgroup_controllers = [ ]\nnamespaces = []\n' >/etc/libvirt/qemu.conf
printf 'auth_unix_rw = "none"\nauth_unix_ro = "none"\nunix_sock_group = "root"\n' >/etc/libvirt/libvirtd.conf
printf 'libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin\n' >>/etc/passwd # which libvirtd looks for all the same
printf 'libvirt-qemu:x:64055:\nlibvirt:x:64056:\n' >>/etc/group
for name in iptables ip6tables; do [ -e "/usr/sbin/$name" ] || ln -s "$name-nft" "/usr/sbin/$name"; done # as Debian's alternatives do
dbus-daemon --system --fork
virtlogd -d
libvirtd -d
for ((i = 0; ; i++)); do
	virsh -c qemu:///system version >/dev/null 2>&1 && break
	((i < 600)) || { echo "libvirtd does not answer" >&2; exit 1; }
	sleep 0.1
done
virsh -q -c qemu:///system pool-define-as default dir --target "$1"
virsh -q -c qemu:///system pool-start default
