package redis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// ErrOption marks an option that cannot be used.
var ErrOption = errors.New("bad option of redis")

const (
	// minMasters is the smallest cluster that Redis supports.
	minMasters = 3
	// busOffset is how far above the clients' port the nodes' own one is.
	busOffset = 10000
	// minNodeTimeout keeps handshakes, which end with it, possible over slow links.
	minNodeTimeout = 100 * time.Millisecond
	// maxReplicas is how many replicas a master may have.
	maxReplicas = 5
)

// Words of the options rebalance and join_as.
const (
	rebalancePipelined = "pipelined"
	rebalanceCLI       = "redis-cli"
	joinAuto           = "auto"
	joinMaster         = "master"
	joinReplica        = "replica"
)

// options are a cluster's settings. What is not named keeps Redis' own default, but
// for persistence: an append-only file is kept, and no snapshots are taken.
type options struct {
	masters, replicas int // replicas of each master
	port              int
	nodeTimeout       time.Duration // 0: Redis' own, 15 s
	persistent        bool          // an append-only file is kept
	rebalance         string
	joinAs            string
	wait              int      // replicas that must have a write before it is acknowledged
	config            []string // further arguments of the server
}

// optionNames are the options that experiments may give.
var optionNames = []string{
	"appendfsync", "appendonly", "cluster_node_timeout", "cluster_require_full_coverage",
	"io_threads", "join_as", "masters", "maxmemory", "maxmemory_policy", "port", "rebalance", "replicas", "wait",
}

// parseOptions understands the options of a cluster on so many nodes.
func parseOptions(nodes int, given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, optionNames...)
	o := options{
		replicas:    r.Int("replicas", 0, maxReplicas, 0),
		port:        r.Int("port", 1, 65535-busOffset, defaultPort),
		nodeTimeout: r.Duration("cluster_node_timeout", 0),
		persistent:  r.Bool("appendonly", true),
		rebalance:   r.Choice("rebalance", rebalancePipelined, rebalancePipelined, rebalanceCLI),
		joinAs:      r.Choice("join_as", joinAuto, joinAuto, joinMaster, joinReplica),
		wait:        r.Int("wait", 0, maxReplicas, 0),
	}
	o.masters = r.Int("masters", 0, 1000, nodes/(1+o.replicas))
	set := func(directive, value string) { o.config = append(o.config, "--"+directive, value) }
	if s := r.Choice("appendfsync", "", "always", "everysec", "no"); s != "" {
		set("appendfsync", s)
	}
	set("appendonly", yesNo(o.persistent))
	set("cluster-require-full-coverage", yesNo(r.Bool("cluster_require_full_coverage", true)))
	if n := r.Int("io_threads", 1, 128, 1); n > 1 {
		set("io-threads", strconv.Itoa(n))
	}
	if n := r.Bytes("maxmemory", 0); n > 0 {
		set("maxmemory", strconv.FormatInt(n, 10))
	}
	if s := r.Choice("maxmemory_policy", "", "allkeys-lfu", "allkeys-lru", "allkeys-random", "noeviction",
		"volatile-lfu", "volatile-lru", "volatile-random", "volatile-ttl"); s != "" {
		set("maxmemory-policy", s)
	}
	if o.nodeTimeout > 0 {
		set("cluster-node-timeout", strconv.FormatInt(o.nodeTimeout.Milliseconds(), 10))
	}
	if r.Err() != nil {
		return o, r.Err()
	}
	return o, o.check(nodes)
}

func (o options) check(nodes int) error {
	need := o.masters * (1 + o.replicas)
	switch {
	case o.nodeTimeout > 0 && o.nodeTimeout < minNodeTimeout:
		return fmt.Errorf("%w: cluster_node_timeout %v is below %v", ErrOption, o.nodeTimeout, minNodeTimeout)
	case o.masters < minMasters:
		return fmt.Errorf("%w: %d masters (%d nodes, %d replicas of each): Redis Cluster needs at least %d",
			ErrOption, o.masters, nodes, o.replicas, minMasters)
	case need != nodes:
		return fmt.Errorf("%w: %d masters with %d replicas each are %d nodes, there are %d",
			ErrOption, o.masters, o.replicas, need, nodes)
	case o.wait > o.replicas:
		return fmt.Errorf("%w: wait: %d replicas are to acknowledge a write, a master has %d", ErrOption, o.wait, o.replicas)
	}
	return nil
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// arguments are those of a server on a host, with its directory.
func (o options) arguments(h host.Host, dir string) []string {
	announce := " --cluster-announce-ip " + h.Addr()
	for name, port := range map[string]int{"port": o.port, "bus-port": o.port + busOffset} {
		if outside := host.Port(h, port); outside != port {
			announce += " --cluster-announce-" + name + " " + strconv.Itoa(outside)
		}
	}
	return append(strings.Fields("--bind "+host.Listen(h)+" --port "+strconv.Itoa(o.port)+" --protected-mode no"+
		" --cluster-enabled yes --cluster-config-file nodes.conf"+announce+
		// Otherwise a master that gives its last slot away becomes a replica.
		" --cluster-allow-replica-migration no"+
		// A replica's first copy waits for others that may want one, 5 s by default.
		" --repl-diskless-sync-delay 0"+
		" --daemonize no"), append([]string{"--logfile", "", "--save", "", "--dir", dir}, o.config...)...)
}
