#!/bin/bash
# image.sh TAR NAME FILE[:AS]...: an image of single files with the libraries that they need, and of folders, as
# `ctr images import` reads it, without a registry or a daemon. It sleeps, where nothing else is asked of it.
set -eu
out=$1 name=$2
shift 2
set -- /bin/sh /usr/bin/sleep /usr/bin/basename /usr/bin/dirname /usr/bin/readlink "$@" # the programs of installations are started by scripts
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$dir/root
mkdir -p $root/{tmp,var/tmp,etc,proc,sys,dev,run,root}
chmod 1777 $root/tmp $root/var/tmp
for f in "$@"; do
	as=${f#*:} f=${f%%:*}
	mkdir -p "$root$(dirname "$as")"
	if [ -d "$f" ]; then # with its links, some of which lead nowhere
		cp -a "$f" "$root$as"
		programs=$(find "$f" -path '*/bin/*' -type f -executable)
	else
		cp -L "$f" "$root$as"
		programs=$f
	fi
	for p in $programs; do
		case $p in *.elf) continue ;; esac # started with the loader and the libraries of its own folder
		for lib in $(ldd "$p" 2>/dev/null | grep -oE '/[^ ]+' || true); do
			[ -e "$root$lib" ] || { mkdir -p "$root$(dirname "$lib")"; cp -L "$lib" "$root$lib"; }
		done
	done
done
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n' >$root/etc/passwd
tar -C $root -cf $dir/layer.tar .
layer=$(sha256sum <$dir/layer.tar | cut -d' ' -f1)
printf '{"architecture":"amd64","os":"linux","config":{"Cmd":["/usr/bin/sleep","infinity"],"Env":["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' $layer >$dir/config.json
printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$name" >$dir/manifest.json
tar -C $dir -cf "$out" config.json layer.tar manifest.json
