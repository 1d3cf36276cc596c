#!/bin/bash
# swarm-redis.sh up|servers|down CLI: a Redis Cluster of three members as a service of a swarm, a member on each machine, reached
# by ports of the machines. CLI is redis-cli, in a folder with redis-server.
set -eu
cli=$2 bin=$(dirname "$2")
docker() { /usr/bin/docker "$@"; }
servers='10.99.0.1:6379 10.99.0.2:6379 10.99.0.3:6379'
case $1 in
up)
	docker service create --quiet --detach --no-resolve-image --name redis --mode global --env 'NODE={{.Node.Hostname}}' \
		--publish mode=host,target=6379,published=6379 --publish mode=host,target=16379,published=16379 \
		test/redis:1 /bin/sh -c "exec $bin/redis-server --cluster-enabled yes --cluster-announce-ip 10.99.0.\${NODE#h} --protected-mode no --dir /tmp" >/dev/null
	for s in $servers; do
		until [ "$("$cli" -h "${s%:*}" ping 2>/dev/null)" = PONG ]; do sleep 0.1; done
	done
	# shellcheck disable=SC2086 # a word a server
	"$cli" --cluster create $servers --cluster-yes
	for s in $servers; do
		until "$cli" -h "${s%:*}" cluster info | grep -q cluster_state:ok; do sleep 0.1; done
	done
	;;
servers) printf '%s\n' $servers ;;
down)
	docker service rm redis
	for s in $servers; do
		while "$cli" -h "${s%:*}" ping >/dev/null 2>&1; do sleep 0.1; done
	done
	;;
*) exit 2 ;;
esac
