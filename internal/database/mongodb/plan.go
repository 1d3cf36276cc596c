package mongodb

import (
	"fmt"
	"slices"
)

// Roles of processes.
const (
	roleMember = "mongod" // of a replica set that clients talk to
	roleShard  = "shard"
	roleConfig = "config"
	roleRouter = "mongos"
)

const (
	setName    = "rs0"
	configName = "config"
	// Ports above the clients': MongoDB's own for shards and config servers, and ten
	// further for each further member on a node.
	shardOffset  = 1
	configOffset = 2
	memberStride = 10
)

// process is one server of a plan.
type process struct {
	role string
	set  string // its replica set, "" for a mongos
	node int
	port int
}

// planProcesses places the processes of a cluster on nodes. Members of a shard are on different
// nodes; where there are fewer nodes than members, every node holds members of several
// shards, each beginning on a node of its own, so that primaries are spread.
func (o options) planProcesses(nodes []string) []process {
	if !o.sharded {
		var all []process
		for i := range nodes {
			all = append(all, process{role: roleMember, set: setName, node: i, port: o.port})
		}
		return all
	}
	var all []process
	for i := range o.configServers {
		all = append(all, process{role: roleConfig, set: configName, node: i, port: o.port + configOffset})
	}
	on := make([]int, len(nodes)) // members of shards
	for s := range o.shards {
		for r := range o.replicas {
			node := (s + r) % len(nodes)
			if o.shards*o.replicas <= len(nodes) {
				node = s + r*o.shards
			}
			all = append(all, process{role: roleShard, set: shardName(s), node: node, port: o.port + shardOffset + on[node]*memberStride})
			on[node]++
		}
	}
	for i, n := range nodes {
		if len(o.mongos) == 0 || slices.Contains(o.mongos, n) {
			all = append(all, process{role: roleRouter, node: i, port: o.port})
		}
	}
	return all
}

func shardName(i int) string { return fmt.Sprint("shard", i) }
