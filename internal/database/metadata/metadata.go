// Package metadata is the adapter of the metadata service. Servers are processes of the program metad (`metad serve`).
//
// # Servers
//
//	servers: one    centralised: one server has the whole tree
//	servers: site   distributed: a server per site
//	servers: node   distributed: a server per node
//
// A server is one process or a group of replicas: on all nodes of its site by default. The replicas of a node's server
// are on that node and the following ones, so that a node has replicas of several servers.
//
// # The tree
//
//	/usertable/KEY/FIELD    records of YCSB's workloads: a directory each, a file per field
//	/own/NODE, /shared/NODE areas of the workloads of package mdtest, one for each node
//
// In a distributed tree a node's areas are delegated to its server. A record's fields are written together, but a
// concurrent read may see some of them.
package metadata

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/load"
)

// Name is the name of the service in experiments.
const Name = "metadata"

const program = "metad"

// memory: a replica took 40 MB with 100,000 entries, and as much again under load.
const memory = 96 << 20

// Metadata is the metadata service as a database.
type Metadata struct{}

// New returns the metadata service.
func New() *Metadata { return &Metadata{} }

var (
	_ database.Database = (*Metadata)(nil)
	_ database.Anchored = (*Metadata)(nil)
	_ database.Frail    = (*Metadata)(nil)
)

func (*Metadata) Name() string { return Name }

func (*Metadata) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Tree: true, Resize: true, LeaveAbrupt: true, Replication: true, Restart: true, MinNodes: 1, Memory: memory}
}

func (*Metadata) Check(nodes int, o database.Options) error {
	parsed, err := parseOptions(o)
	if err == nil && parsed.replicas > nodes {
		return fmt.Errorf("%w: replicas %d of %d nodes", ErrOption, parsed.replicas, nodes)
	}
	return err
}

// Fixed implements database.Anchored: every node has a part of the tree, or one node has all of it.
func (*Metadata) Fixed(nodes []string, o database.Options) map[string]string {
	parsed, err := parseOptions(o)
	if err != nil || parsed.resizable() {
		return nil
	}
	fixed := make(map[string]string)
	for _, n := range nodes {
		fixed[n] = "the servers' addresses are fixed where the tree is spread, or a server is one process"
	}
	return fixed
}

func (*Metadata) Frail(nodes int, o database.Options) string {
	if parsed, err := parseOptions(o); err == nil && !parsed.resizable() {
		return "a server that is lost takes its part of the tree with it"
	}
	if nodes < 3 {
		return "two replicas cannot lose one"
	}
	return ""
}

// Find implements database.Database: the program metad, or the one at from.
func (*Metadata) Find(_, from string) (database.Installation, error) {
	in, err := install.Metad.Install(Name, from)
	if err != nil {
		return database.Installation{}, fmt.Errorf("finding the metadata service: %w", err)
	}
	return database.Installation{Database: Name, Version: in.Version, Programs: in.Programs}, nil
}

func (*Metadata) Properties() []string { return Properties() }

func (*Metadata) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	return openClient(ctx, s)
}

// About describes the metadata service to the laboratory and its documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() },
	Row: database.Row{Resize: "yes, of one server", Replicas: "every replica has its server's tree", Smallest: "1 node; 3 survive a loss"},
	Smoke: database.Smoke{
		Text: "Smoke test of the laboratory with the metadata service, which needs no installation. Three nodes 5 ms " +
			"apart, one tree distributed over three servers, and the mix of operations of production file systems.",
		Options:  "{servers: node}",
		Workload: "{name: namespace, records: 1000, threads: 8, properties: {shared: 0.2}}",
	},
}

// Errors of settings.
var (
	// ErrOption marks an option that cannot be used.
	ErrOption = errors.New("invalid option of metadata")
	// ErrProperty marks a client property that cannot be used.
	ErrProperty = errors.New("bad property")
)

const (
	defaultPort     = 8080
	defaultPeerPort = 9080

	serversOne  = "one"
	serversSite = "site"
	serversNode = "node"
)

type options struct {
	port, peerPort int // of a node's first replica; its next has the next
	servers        string
	replicas       int    // of each server; 0: all there are (servers one, site), or 1
	root           string // the node whose server has the root

	// balance makes servers move hot directories. Zero interval, rest, stay and floor mean the balancer's defaults.
	balance              bool
	interval, rest, stay time.Duration
	floor                int // operations/s
}

func parseOptions(given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, "port", "peer_port", "servers", "replicas", "root", "balance", "balance_interval", "balance_rest", "balance_stay", "balance_floor")
	o := options{
		port:     r.Int("port", 1, 65000, defaultPort),
		peerPort: r.Int("peer_port", 1, 65000, defaultPeerPort),
		servers:  r.Choice("servers", serversOne, serversOne, serversSite, serversNode),
		replicas: r.Int("replicas", 0, 64, 0),
		root:     r.Text("root", ""),
		balance:  r.Bool("balance", false),
		interval: r.Duration("balance_interval", 0),
		rest:     r.Duration("balance_rest", 0),
		stay:     r.Duration("balance_stay", 0),
		floor:    r.Int("balance_floor", 0, 1e9, 0),
	}
	if o.balance && o.servers == serversOne {
		r.Reject("balance", "false where there is one server")
	}
	if gap := o.port - o.peerPort; r.Err() == nil && -slots < gap && gap < slots {
		r.Reject("peer_port", "a port that is not within 64 of port")
	}
	return o, r.Err()
}

func (o options) balancerArguments() []string {
	if !o.balance {
		return nil
	}
	args := []string{"--balance"}
	if o.interval > 0 {
		args = append(args, "--balance-interval", o.interval.String())
	}
	if o.rest > 0 {
		args = append(args, "--balance-rest", o.rest.String())
	}
	if o.stay > 0 {
		args = append(args, "--balance-stay", o.stay.String())
	}
	if o.floor > 0 {
		args = append(args, "--balance-floor", strconv.Itoa(o.floor))
	}
	return args
}

// slots is the maximum number of replicas on a node.
const slots = 64

func (o options) resizable() bool { return o.servers == serversOne && o.replicas != 1 }

// Properties of the client.
const (
	PropAddresses = "metadata.addresses" // host:port,host:port,...: which is asked first, and so on
	PropAreas     = "metadata.areas"     // names of areas, the nearest first, for workloads on trees
)

// Properties lists the client's properties.
func Properties() []string { return []string{PropAddresses, PropAreas} }

type settings struct {
	addresses string
	areas     []string
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "metadata.", p, Properties()...)
	s := settings{addresses: strings.Join(r.Addresses(PropAddresses, defaultPort), ","), areas: r.List(PropAreas)}
	return s, r.Err()
}
