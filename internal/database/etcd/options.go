package etcd

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"skerry/internal/database"
)

// ErrOption marks an option that cannot be used.
var ErrOption = errors.New("invalid option of etcd")

const (
	defaultPort     = 2379
	defaultPeerPort = 2380
	// etcd's own defaults, below which nothing is derived.
	defaultHeartbeat = 100 * time.Millisecond
	defaultElection  = 1000 * time.Millisecond
	// maxElection is the most that etcd allows.
	maxElection = 50 * time.Second
)

// options are the settings of a cluster. Other settings keep etcd's defaults.
type options struct {
	port, peerPort      int
	heartbeat, election time.Duration
	learner             bool
	read                string
	leader              string   // the node whose member is to lead, "" for any
	config              []string // further arguments of etcd
}

// parseOptions parses the options of a cluster with a longest round trip between members, 0 if unknown. etcd's tuning
// guide recommends a heartbeat of about that round trip and an election timeout of at least ten.
func parseOptions(given database.Options, roundTrip time.Duration) (options, error) {
	r := database.ReadOptions(ErrOption, given,
		"port", "peer_port", "heartbeat_interval", "election_timeout", "snapshot_count", "quota_backend",
		"auto_compaction_retention", "max_request", "pre_vote", "learner", "read", "leader", "log_level")
	heartbeat := min(max(defaultHeartbeat, roundTrip.Round(time.Millisecond)), maxElection/10)
	o := options{
		port:      r.Int("port", 1, 65535, defaultPort),
		peerPort:  r.Int("peer_port", 1, 65535, defaultPeerPort),
		heartbeat: r.Duration("heartbeat_interval", heartbeat),
		learner:   r.Bool("learner", true),
		read:      r.Choice("read", readLinearizable, readLinearizable, readSerializable),
		leader:    r.Text("leader", ""),
	}
	o.election = r.Duration("election_timeout", max(defaultElection, 10*o.heartbeat))
	o.config = []string{
		"--heartbeat-interval", milliseconds(o.heartbeat), "--election-timeout", milliseconds(o.election),
		"--pre-vote=" + strconv.FormatBool(r.Bool("pre_vote", false)),
		"--log-level", r.Choice("log_level", "info", "debug", "info", "warn", "error"),
	}
	if r.Has("snapshot_count") {
		o.config = append(o.config, "--snapshot-count", strconv.Itoa(r.Int("snapshot_count", 1, 1<<31-1, 0)))
	}
	for name, flag := range map[string]string{"quota_backend": "--quota-backend-bytes", "max_request": "--max-request-bytes"} {
		if r.Has(name) {
			o.config = append(o.config, flag, strconv.FormatInt(r.Bytes(name, 0), 10))
		}
	}
	if r.Has("auto_compaction_retention") {
		o.config = append(o.config, "--auto-compaction-mode", "periodic",
			"--auto-compaction-retention", r.Duration("auto_compaction_retention", 0).String())
	}
	switch {
	case r.Err() != nil:
		return o, r.Err()
	case o.port == o.peerPort:
		return o, fmt.Errorf("%w: port and peer_port are both %d", ErrOption, o.port)
	case o.election < 5*o.heartbeat:
		return o, fmt.Errorf("%w: election_timeout %v is less than 5 times heartbeat_interval %v: etcd refuses that",
			ErrOption, o.election, o.heartbeat)
	case o.election > maxElection:
		return o, fmt.Errorf("%w: election_timeout %v is over %v: etcd refuses that", ErrOption, o.election, maxElection)
	}
	return o, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// ErrProperty marks a client property that cannot be used.
var ErrProperty = errors.New("bad property")

// Properties of the client.
const (
	PropEndpoints     = "etcd.endpoints"      // host:port,host:port,...
	PropRead          = "etcd.read"           // linearizable (default) or serializable
	PropRoute         = "etcd.route"          // which endpoint first: nearest (default), listed or spread
	PropRequireLeader = "etcd.require_leader" // refuse at once while the member knows of no leader; default false
	PropTimeout       = "etcd.timeout"        // milliseconds for an operation that has no other bound; default 10000
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropEndpoints, PropRead, PropRoute, PropRequireLeader, PropTimeout}
}

const (
	readLinearizable = "linearizable"
	readSerializable = "serializable"

	routeNearest = "nearest"
	routeListed  = "listed"
	routeSpread  = "spread"

	defaultTimeout = 10 * time.Second
)

type settings struct {
	endpoints     []string
	serializable  bool
	route         string
	requireLeader bool
	timeout       time.Duration
	access        string // see database.Access
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "etcd.", p, Properties()...)
	s := settings{
		endpoints:     r.Addresses(PropEndpoints, defaultPort),
		serializable:  r.Choice(PropRead, readLinearizable, readLinearizable, readSerializable) == readSerializable,
		route:         r.Choice(PropRoute, routeNearest, routeNearest, routeListed, routeSpread),
		requireLeader: r.Bool(PropRequireLeader, false),
		timeout:       r.Milliseconds(PropTimeout, defaultTimeout),
		access:        p[database.PropAccess],
	}
	return s, r.Err()
}
