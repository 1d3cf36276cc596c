#!/bin/bash
# swarm.sh SHARE: starts Docker on this machine. h1 makes a swarm, and the other machines join it.
set -eu
share=$1 n=$(hostname | tr -d h)
docker() { /usr/bin/docker "$@"; } # this machine's PATH may have another client
mkdir -p /var/lib/docker
mount -t tmpfs tmpfs /var/lib/docker # overlay2 refuses an upper directory on an overlay
dockerd --storage-driver overlay2 --exec-opt native.cgroupdriver=cgroupfs >"$share/dockerd-$n.log" 2>&1 &
until docker version >/dev/null 2>&1; do
	kill -0 $! || { tail -20 "$share/dockerd-$n.log" >&2; exit 1; }
	sleep 0.1
done
docker load --quiet --input "$share/redis.tar"
if [ "$n" = 1 ]; then
	docker swarm init --advertise-addr 10.99.0.1 >/dev/null
	docker swarm join-token --quiet worker >"$share/token.part"
	mv "$share/token.part" "$share/token"
else
	until [ -e "$share/token" ]; do sleep 0.1; done
	docker swarm join --token "$(cat "$share/token")" --advertise-addr "10.99.0.$n" 10.99.0.1:2377
fi
