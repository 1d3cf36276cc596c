#!/bin/sh
# tofu-setup.sh FOLDER: makes what TestTofu needs, outside the repository: FOLDER/bin/tofu, OpenTofu built from its module (some five
# minutes), FOLDER/providers, a mirror of the providers that can be built from theirs (a minute each), FOLDER/tree, Debian's
# libvirt, and FOLDER/image.qcow2, a disk with Debian and cloud-init as clouds have it (two minutes).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/bin" "$1/build"
cd "$1"
export GOFLAGS="-trimpath -buildvcs=false -mod=mod" CGO_ENABLED=0
folder=$PWD

# build NAME MODULE VERSION PACKAGE FILE: FILE from PACKAGE of MODULE. What its go.mod replaces is replaced here too:
# go install refuses such modules.
build() {
	[ ! -e "$5" ] || return 0
	echo "building $1 $3" >&2
	rm -rf "build/$1"
	mkdir -p "build/$1" "$(dirname "$5")"
	cd "build/$1"
	go mod init "build/$1" 2>/dev/null
	mod=$(go mod download -json "$2@$3" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	go mod edit -go="$(sed -n 's/^go //p' "$mod")" -require "$2@$3"
	sed -n 's/^\(replace\)\{0,1\}[[:space:]]*\([^ ]*\)[^=]* => \([^ ]*\) \(v[^ ]*\).*/\2=\3@\4/p' "$mod" | while read -r line; do go mod edit -replace "$line"; done
	go build -ldflags "-s -w $6" -o "$folder/$5.part" "$4"
	cd "$folder"
	mv "$5.part" "$5"
	rm -rf "build/$1"
}

mirror() { # mirror NAMESPACE TYPE VERSION: where OpenTofu looks for a provider's program
	echo "providers/registry.opentofu.org/$1/$2/$3/$(go env GOOS)_$(go env GOARCH)/terraform-provider-$2_v$3"
}

build tofu github.com/opentofu/opentofu v1.12.6 github.com/opentofu/opentofu/cmd/tofu bin/tofu "-X github.com/opentofu/opentofu/version.dev=no"
build openstack github.com/terraform-provider-openstack/terraform-provider-openstack v1.54.1 github.com/terraform-provider-openstack/terraform-provider-openstack \
	"$(mirror terraform-provider-openstack openstack 1.54.1)" ""
build libvirt github.com/dmacvicar/terraform-provider-libvirt v0.7.6 github.com/dmacvicar/terraform-provider-libvirt \
	"$(mirror dmacvicar libvirt 0.7.6)" "-X main.version=0.7.6"

"$here/unpack.sh" tree libvirt-daemon-system libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 qemu-utils dnsmasq-base genisoimage mmdebstrap

# The image boots by GRUB from its first partition, which takes all but the first MiB of 3 GiB.
if [ ! -e image.qcow2 ]; then
	rm -rf image
	mkdir image
	find /etc/apt/sources.list* -type f \( -name '*.list' -o -name '*.sources' \) -exec cat {} + | tree/usr/bin/mmdebstrap --quiet --variant=minbase --mode=root \
		--include=systemd-sysv,udev,dbus,openssh-server,sudo,cloud-init,cloud-guest-utils,fdisk,iproute2,iputils-ping,procps,netbase,linux-image-amd64,initramfs-tools,grub-pc-bin,grub-common \
		--essential-hook='mkdir -p "$1/etc/initramfs-tools/conf.d" && echo MODULES=list >"$1/etc/initramfs-tools/conf.d/test" && printf "virtio_pci\nvirtio_blk\next4\n" >"$1/etc/initramfs-tools/modules"' \
		--customize-hook='cd "$1" && ln -sf "$(ls boot/vmlinuz-* | sed s,boot/,,)" boot/vmlinuz && ln -sf "$(ls boot/initrd.img-* | sed s,boot/,,)" boot/initrd' \
		--customize-hook='mkdir -p "$1/boot/grub" && printf "linux /boot/vmlinuz root=/dev/vda1 rw console=ttyS0 net.ifnames=0 apparmor=0 mitigations=off quiet\ninitrd /boot/initrd\nboot\n" >"$1/boot/grub/grub.cfg"' \
		--customize-hook='chroot "$1" grub-mkimage -O i386-pc -o /boot/grub/core.img -p "(hd0,msdos1)/boot/grub" biosdisk part_msdos ext2 linux normal boot' \
		--customize-hook='echo "datasource_list: [NoCloud, None]" >"$1/etc/cloud/cloud.cfg.d/90_test.cfg" && chroot "$1" systemctl enable -q systemd-networkd && rm -f "$1"/etc/ssh/ssh_host_*' \
		bookworm image/root.tar -
	mkdir image/root
	tar -C image/root -xf image/root.tar
	mkfs.ext4 -q -F -L root -d image/root -E offset=1048576 image/disk 3071m
	dd if=image/root/usr/lib/grub/i386-pc/boot.img of=image/disk bs=446 count=1 conv=notrunc status=none
	printf '\200\0\002\0\203\0\0\0\0\010\0\0\0\370\137\0' | dd of=image/disk bs=1 seek=446 conv=notrunc status=none # bootable, Linux, from sector 2048
	printf '\125\252' | dd of=image/disk bs=1 seek=510 conv=notrunc status=none
	dd if=image/root/boot/grub/core.img of=image/disk bs=512 seek=1 conv=notrunc status=none
	PATH=$PATH:$folder/tree/usr/bin qemu-img convert -O qcow2 image/disk image/disk.qcow2
	mv image/disk.qcow2 image.qcow2
	rm -rf image
fi

# Last, as registries may lack one of the packages that these are made of: providers that cannot be built have a stand-in each, which knows what they are given and tell (tofu-standin.go.txt).
if [ ! -e bin/standin ]; then
	mkdir -p build/standin
	cp "$here/tofu-standin.go.txt" build/standin/main.go
	(cd build/standin && { [ -e go.mod ] || go mod init standin 2>/dev/null; } && go get github.com/hashicorp/terraform-plugin-go@v0.31.0 && go build -o "$folder/bin/standin" .)
	rm -rf build/standin
fi
standin() { # standin TYPE VERSION PACKAGE RESOURCE...: from the real provider's bindings in an npm package
	place=$(mirror hashicorp "$1" "$2") package=$3
	[ ! -e "$place" ] || return 0
	rm -rf build/schema
	mkdir -p build/schema/package "$(dirname "$place")/schema"
	(cd build/schema && npm pack --loglevel=error "$package" >/dev/null && tar -xzf ./*.tgz)
	shift 3
	for resource in provider "$@"; do cp -R "build/schema/package/lib/$resource" "$(dirname "$place")/schema"; done
	cp bin/standin "$place"
	rm -rf build/schema
}
standin aws 6.69.1 @cdktn/provider-aws@25.8.1 data-aws-ami default-route-table instance internet-gateway key-pair security-group subnet vpc \
	vpc-security-group-egress-rule vpc-security-group-ingress-rule
standin azurerm 5.10.0 @cdktn/provider-azurerm@18.9.0 linux-virtual-machine network-interface network-security-group public-ip resource-group subnet \
	subnet-network-security-group-association virtual-network
standin google 8.7.0 @cdktn/provider-google@21.1.0 compute-firewall compute-instance compute-network
