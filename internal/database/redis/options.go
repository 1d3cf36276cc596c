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
var ErrOption = errors.New("invalid option of redis")

const (
	// minMasters is the smallest cluster that Redis supports.
	minMasters = 3
	// busOffset is the distance of the cluster bus port from the client port.
	busOffset = 10000
	// minNodeTimeout keeps handshakes, which end with it, possible over slow links.
	minNodeTimeout = 100 * time.Millisecond
	// maxReplicas is how many replicas a master may have.
	maxReplicas = 5
)

// Values of the options rebalance and join_as.
const (
	rebalanceNative    = "native"
	rebalancePipelined = "pipelined"
	rebalanceCLI       = "redis-cli"
	joinAuto           = "auto"
	joinMaster         = "master"
	joinReplica        = "replica"
)

// options are the settings of a cluster. Unset ones keep Redis' defaults, except persistence: no snapshots.
type options struct {
	masters, replicas int // replicas of each master
	port              int
	nodeTimeout       time.Duration // 0: Redis' own, 15 s
	persistent        bool          // an append-only file is kept
	rebalance         string        // "": what resolveRebalance chooses
	joinAs            string
	wait              int      // replicas that must have a write before it is acknowledged
	config            []string // further arguments of the server
}

var optionNames = []string{
	"appendfsync", "appendonly", "cluster_node_timeout", "cluster_require_full_coverage",
	"io_threads", "join_as", "masters", "maxmemory", "maxmemory_policy", "port", "rebalance", "replicas", "wait",
}

func parseOptions(nodes int, given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, optionNames...)
	o := options{
		replicas:    r.Int("replicas", 0, maxReplicas, 0),
		port:        r.Int("port", 1, 65535-busOffset, defaultPort),
		nodeTimeout: r.Duration("cluster_node_timeout", 0),
		persistent:  r.Bool("appendonly", true),
		rebalance:   r.Choice("rebalance", "", rebalanceNative, rebalancePipelined, rebalanceCLI),
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
		return fmt.Errorf("%w: wait: %d replicas must acknowledge a write, but a master has %d", ErrOption, o.wait, o.replicas)
	}
	return nil
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (o options) arguments(h host.Host, dir string) []string {
	announce := " --cluster-announce-ip " + h.Addr()
	for name, port := range map[string]int{"port": o.port, "bus-port": o.port + busOffset} {
		if outside := host.Port(h, port); outside != port {
			announce += " --cluster-announce-" + name + " " + strconv.Itoa(outside)
		}
	}
	return append(strings.Fields("--bind "+host.Listen(h)+" --port "+strconv.Itoa(o.port)+" --protected-mode no"+
		" --cluster-enabled yes --cluster-config-file nodes.conf"+announce+
		// By default, a master that loses its last slot becomes a replica.
		" --cluster-allow-replica-migration no"+
		// By default, the first copy to a replica waits 5 s for further replicas.
		" --repl-diskless-sync-delay 0"+
		" --daemonize no"), append([]string{"--logfile", "", "--save", "", "--dir", dir}, o.config...)...)
}

// ErrProperty marks a client property that cannot be used.
var ErrProperty = errors.New("bad property")

// Properties of the client. Those of YCSB's own Redis binding have the same meaning.
const (
	PropHosts     = "redis.hosts"     // host:port,host:port,...: where to ask for the cluster's nodes
	PropHost      = "redis.host"      // one of them
	PropPort      = "redis.port"      // default 6379
	PropUser      = "redis.user"      // of an access control list
	PropPassword  = "redis.password"  //
	PropCluster   = "redis.cluster"   // true, false; default: ask the server
	PropScan      = "redis.scan"      // true, false: keep the index that scans need; default: when scanproportion is above 0
	PropTimeout   = "redis.timeout"   // milliseconds for an operation that has no other bound; default 10000
	PropRedirects = "redis.redirects" // MOVED and ASK followed per operation; default 5
	PropWait      = "redis.wait"      // replicas that must have a write before it counts as done; default 0
	PropPrefix    = "redis.prefix"    // before every key, also of the index; default none
	// PropScanProportion is the workload's own property.
	PropScanProportion = "scanproportion"
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropHosts, PropHost, PropPort, PropUser, PropPassword, PropCluster, PropScan, PropTimeout, PropRedirects, PropWait, PropPrefix}
}

const (
	defaultPort      = 6379
	defaultTimeout   = 10 * time.Second
	defaultRedirects = 5
)

// settings are the parsed properties of a client. They are comparable.
type settings struct {
	seeds          string // addresses, comma separated
	user, password string
	access         string // see database.Access
	cluster        string // "true", "false", or "" to query the server
	scan           bool
	timeout        time.Duration
	redirects      int
	wait           int
	prefix         string
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "redis.", p, Properties()...)
	hosts := PropHosts
	if !r.Has(PropHosts) && r.Has(PropHost) {
		hosts = PropHost
	}
	s := settings{
		seeds: strings.Join(r.Addresses(hosts, r.Int(PropPort, 1, 65535, defaultPort)), ","),
		user:  p[PropUser], password: p[PropPassword], access: p[database.PropAccess], prefix: p[PropPrefix],
		scan: r.Bool(PropScan, false), timeout: r.Milliseconds(PropTimeout, defaultTimeout),
		wait: r.Int(PropWait, 0, maxReplicas, 0), redirects: r.Int(PropRedirects, 0, 1000, defaultRedirects),
	}
	if strings.ContainsAny(s.prefix, "{}*?[]\\") { // a hash tag would put all keys into one slot; others are patterns of SCAN
		return s, fmt.Errorf("%w: %s: %q contains one of {}*?[]\\", ErrProperty, PropPrefix, s.prefix)
	}
	if r.Has(PropCluster) {
		s.cluster = strconv.FormatBool(r.Bool(PropCluster, false))
	}
	if r.Has(PropScanProportion) && !r.Has(PropScan) {
		f, err := strconv.ParseFloat(r.Text(PropScanProportion, ""), 64)
		if err != nil {
			r.Reject(PropScanProportion, "a number")
		}
		s.scan = f > 0
	}
	return s, r.Err()
}
