package redis

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/unit"
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
)

// options are a cluster's settings. What is not named keeps Redis' own default, but
// for persistence: save is off, so that disks do not blur what networks do.
type options struct {
	masters, replicas int // replicas of each master
	port              int
	nodeTimeout       time.Duration // 0: Redis' own, 15 s
	config            []string      // further arguments of redis-server
}

// optionNames are the options that experiments may give.
var optionNames = []string{
	"appendfsync", "appendonly", "cluster_node_timeout", "cluster_require_full_coverage",
	"io_threads", "masters", "maxmemory", "maxmemory_policy", "port", "replicas",
}

var (
	fsyncPolicies  = []string{"always", "everysec", "no"}
	memoryPolicies = []string{"allkeys-lfu", "allkeys-lru", "allkeys-random", "noeviction",
		"volatile-lfu", "volatile-lru", "volatile-random", "volatile-ttl"}
)

// parseOptions understands the options of a cluster on so many nodes.
func parseOptions(nodes int, given database.Options) (options, error) {
	o := options{port: defaultPort}
	for _, k := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(optionNames, k) {
			return o, fmt.Errorf("%w: unknown %s%s", ErrOption, k, meant(k, optionNames))
		}
	}
	r := reader{given: given}
	o.replicas = r.integer("replicas", 0, 5, 0)
	o.masters = r.integer("masters", 0, 1000, nodes/(1+o.replicas))
	o.port = r.integer("port", 1, 65535-busOffset, defaultPort)
	o.nodeTimeout = r.duration("cluster_node_timeout")
	r.choice(&o.config, "appendfsync", fsyncPolicies)
	o.config = append(o.config, "--appendonly", yesNo(r.boolean("appendonly", false)))
	o.config = append(o.config, "--cluster-require-full-coverage", yesNo(r.boolean("cluster_require_full_coverage", true)))
	if n := r.integer("io_threads", 1, 128, 1); n > 1 {
		o.config = append(o.config, "--io-threads", strconv.Itoa(n))
	}
	if n := r.bytes("maxmemory"); n > 0 {
		o.config = append(o.config, "--maxmemory", strconv.FormatInt(n, 10))
	}
	r.choice(&o.config, "maxmemory_policy", memoryPolicies)
	if o.nodeTimeout > 0 {
		o.config = append(o.config, "--cluster-node-timeout", strconv.FormatInt(o.nodeTimeout.Milliseconds(), 10))
	}
	if r.err != nil {
		return o, r.err
	}
	if o.nodeTimeout > 0 && o.nodeTimeout < minNodeTimeout {
		return o, fmt.Errorf("%w: cluster_node_timeout %v is below %v", ErrOption, o.nodeTimeout, minNodeTimeout)
	}
	switch need := o.masters * (1 + o.replicas); {
	case o.masters < minMasters:
		return o, fmt.Errorf("%w: %d masters (%d nodes, %d replicas of each): Redis Cluster needs at least %d",
			ErrOption, o.masters, nodes, o.replicas, minMasters)
	case need != nodes:
		return o, fmt.Errorf("%w: %d masters with %d replicas each are %d nodes, there are %d",
			ErrOption, o.masters, o.replicas, need, nodes)
	}
	return o, nil
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// reader reads options and keeps the first error.
type reader struct {
	given database.Options
	err   error
}

func (r *reader) bad(name, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s: %v is not %s", ErrOption, name, r.given[name], want)
	}
}

// text is an option as YAML, JSON or --set would have written it.
func (r *reader) text(name string) (string, bool) {
	v, ok := r.given[name]
	if f, isFloat := v.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10), true // JSON knows no integers
	}
	return strings.TrimSpace(fmt.Sprint(v)), ok
}

func (r *reader) integer(name string, low, high, missing int) int {
	s, ok := r.text(name)
	if !ok {
		return missing
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		r.bad(name, fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	return n
}

func (r *reader) boolean(name string, missing bool) bool {
	s, ok := r.text(name)
	if !ok {
		return missing
	}
	switch s {
	case "true", "yes":
		return true
	case "false", "no":
		return false
	}
	r.bad(name, "true or false")
	return missing
}

func (r *reader) duration(name string) time.Duration {
	s, ok := r.text(name)
	if !ok {
		return 0
	}
	d, err := unit.ParseDuration(s)
	if err != nil || d < time.Millisecond {
		r.bad(name, "a time with its unit (2s, 500ms)")
	}
	return d
}

func (r *reader) bytes(name string) int64 {
	s, ok := r.text(name)
	if !ok {
		return 0
	}
	n, err := unit.ParseBytes(s)
	if err != nil || n <= 0 {
		r.bad(name, "an amount of memory (256MiB)")
	}
	return n
}

// choice appends the directive that an option stands for.
func (r *reader) choice(config *[]string, name string, of []string) {
	s, ok := r.text(name)
	if !ok {
		return
	}
	if !slices.Contains(of, s) {
		r.bad(name, "one of "+strings.Join(of, ", "))
	}
	*config = append(*config, "--"+strings.ReplaceAll(name, "_", "-"), s)
}
