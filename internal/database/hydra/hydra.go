// Package hydra is the adapter of Hydra. Members are processes of the program hydra (`hydra node`).
//
// A site is a cloud; with option clouds each node is one. The members of a cloud share a SQLite file, PostgreSQL or
// MariaDB on the node of the first one, which outlives them as a managed database would. One node may be a witness.
//
// # Records
//
// A record is a row whose value has a member for each field. Values are bytes, but JSON strings are text: a value that
// is no UTF-8, or begins like an encoded one, is written as "base64:" and its encoding. An update is one merge request.
package hydra

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/load"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/deploy"
	"skerry/systems/hydra/hydraclient"
)

// Name is how experiments call Hydra.
const Name = "hydra"

const program = "hydra"

// memory: a member took 40 MB with 10,000 records of 1 kB, and as much again under load.
const memory = 96 << 20

// Hydra is Hydra as a database.
type Hydra struct {
	mu    sync.Mutex
	order map[string][]string // endpoints as they were found to be near
	turn  int

	clients clientPool
}

// New returns Hydra.
func New() *Hydra { return &Hydra{order: make(map[string][]string)} }

var _ database.External = (*Hydra)(nil)

func (*Hydra) Name() string { return Name }

func (*Hydra) Capabilities() database.Capabilities {
	return database.Capabilities{Scan: true, Resize: true, LeaveAbrupt: true, Replication: true, NoLogin: true, Restart: true,
		MinNodes: 1, Memory: memory}
}

func (*Hydra) Check(nodes int, o database.Options) error {
	parsed, err := parseOptions(o)
	if err == nil && parsed.direct && nodes > 1 {
		return fmt.Errorf("%w: direct is one SQL database by itself: it has one node, not %d", ErrOption, nodes)
	}
	return err
}

// Find implements database.Database: the program hydra, or the one at from.
func (*Hydra) Find(_, from string) (database.Installation, error) {
	in, err := install.Hydra.Install(Name, from)
	if err != nil {
		return database.Installation{}, fmt.Errorf("finding hydra: %w", err)
	}
	return database.Installation{Database: Name, Version: in.Version, Programs: in.Programs}, nil
}

func (*Hydra) Properties() []string { return Properties() }

func (d *Hydra) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	if s.walletDNS != "" {
		return openApplication(s), nil
	}
	s.endpoints = d.orderEndpoints(ctx, s)
	return openClient(ctx, s, &d.clients)
}

func (*Hydra) ServerProperties(servers []string, _ string) map[string]string {
	return map[string]string{PropEndpoints: strings.Join(servers, ",")}
}

func (*Hydra) ServerVersion(ctx context.Context, server string, properties map[string]string) (_ string, err error) {
	s, err := parseSettings(properties)
	if err != nil {
		return "", err
	}
	c, err := hydraclient.New(hydraclient.Config{Endpoints: []string{server}, Token: s.token, Timeout: s.timeout})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	status, err := c.Status(ctx)
	return status.Version, err
}

// About describes Hydra to the laboratory and its documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() },
	Choices: choices,
	Row:     database.Row{Replicas: "every cloud has all data", Smallest: "1 node; 3 survive a loss"},
	Smoke: database.Smoke{
		Text: "Does the laboratory work here? Three nodes 5 ms apart with Hydra, which is part of skerry so that " +
			"nothing has to be installed, and YCSB's workload A on 1,000 records.",
	},
}

func choices(p database.Placement) []database.Choice {
	return []database.Choice{{
		Name: "linearizable", Options: database.Options{"prefer_cloud": p.Site}, Reads: database.ReadsLinearizable,
		GivesUp: "a read asks the leader for the newest place in the log",
	}, {
		Name: "local reads", Options: database.Options{"prefer_cloud": p.Site, "reads": "local"}, GivesUp: "a read may return old data",
	}, {
		Name: "bounded reads", Options: database.Options{"prefer_cloud": p.Site, "reads": "bounded", "staleness": "1s"}, GivesUp: "a read may return data up to one second old",
	}}
}

// Errors of settings.
var (
	// ErrOption marks an option that cannot be used.
	ErrOption = errors.New("invalid option of hydra")
	// ErrProperty marks a client property that cannot be used.
	ErrProperty = errors.New("bad property")
)

const (
	defaultPort     = 7070
	defaultPeerPort = 7071
	defaultTimeout  = 10 * time.Second
	defaultShare    = 10
	maxShare        = 10_000

	cloudSite = "site"
	cloudNode = "node"

	routeNearest = "nearest"
	routeListed  = "listed"
	routeSpread  = "spread"
	routeRotate  = "rotate"

	throughMembers = "members"
	throughWallet  = "wallet"
)

type options struct {
	port, peerPort int
	clouds         string
	backend        string // of backends
	witness        string // a node's name
	election       time.Duration
	preferCloud    string
	followWrites   bool
	maxLog         int64
	maxAge         time.Duration
	direct         bool
	reads, ack     string
	staleness      time.Duration
	route          string
	share          int
	through        string
}

func parseOptions(given database.Options) (options, error) {
	r := database.ReadOptions(ErrOption, given, "port", "peer_port", "backend", "clouds", "witness", "election", "prefer_cloud",
		"follow_writes", "max_log", "max_age", "direct", "reads", "staleness", "ack", "route", "share", "through")
	o := options{
		port:         r.Int("port", 1, 65535, defaultPort),
		peerPort:     r.Int("peer_port", 1, 65535, defaultPeerPort),
		clouds:       r.Choice("clouds", cloudSite, cloudSite, cloudNode),
		backend:      r.Choice("backend", backendSQLite, backendNames()...),
		witness:      r.Text("witness", ""),
		election:     r.Duration("election", 0),
		preferCloud:  r.Text("prefer_cloud", ""),
		followWrites: r.Bool("follow_writes", false),
		maxLog:       r.Bytes("max_log", 1<<30),
		maxAge:       r.Duration("max_age", 0),
		direct:       r.Bool("direct", false),
		reads:        readChoice(r, "reads"),
		staleness:    r.Duration("staleness", time.Second),
		ack:          ackChoice(r, "ack"),
		route:        r.Choice("route", routeNearest, routeNearest, routeListed, routeSpread, routeRotate),
		share:        r.Int("share", 0, maxShare, defaultShare),
		through:      r.Choice("through", throughMembers, throughMembers, throughWallet),
	}
	if r.Err() == nil && o.through == throughWallet && (o.port != deploy.PortAPI || o.direct) {
		r.Reject("through", "members: the wallet's balancers ask members of a whole cluster at port 7070")
	}
	if r.Err() == nil && o.port == o.peerPort {
		r.Reject("peer_port", "another port than port")
	}
	return o, r.Err()
}

func readChoice(r *database.SettingReader, name string) string {
	return r.Choice(name, string(api.Linearizable), string(api.Linearizable), string(api.Local), string(api.Bounded))
}

func ackChoice(r *database.SettingReader, name string) string {
	return r.Choice(name, string(api.Committed), string(api.Committed), string(api.Applied), string(api.Everywhere))
}

// Properties of the client.
const (
	PropEndpoints = "hydra.endpoints" // host:port,host:port,...
	PropReads     = "hydra.reads"     // linearizable (default), local or bounded
	PropStaleness = "hydra.staleness" // milliseconds, of bounded reads; default 1000
	PropAck       = "hydra.ack"       // committed (default), applied or everywhere
	PropRoute     = "hydra.route"     // which endpoint first: nearest (default), listed, spread or rotate
	PropShare     = "hydra.share"     // workers on one connection; default 10. 0: HTTP, each with a connection to itself
	PropTimeout   = "hydra.timeout"   // milliseconds for an operation that has no other bound; default 10000
	PropWallet    = "hydra.wallet"    // host:port of the DNS server that names the wallet; operations go through it then
	PropToken     = "hydra.token"     // bearer token, for clusters beside the laboratory's
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropEndpoints, PropReads, PropStaleness, PropAck, PropRoute, PropShare, PropTimeout, PropWallet, PropToken}
}

type settings struct {
	endpoints []string
	reads     api.Read
	staleness time.Duration
	ack       api.Ack
	route     string
	share     int
	timeout   time.Duration
	token     string
	walletDNS string // the DNS server that names the wallet, "" to ask members
	table     string // which a client creates, "" for one that exists
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "hydra.", p, Properties()...)
	s := settings{
		endpoints: r.Addresses(PropEndpoints, defaultPort),
		reads:     api.Read(readChoice(r, PropReads)),
		staleness: r.Milliseconds(PropStaleness, time.Second),
		ack:       api.Ack(ackChoice(r, PropAck)),
		route:     r.Choice(PropRoute, routeNearest, routeNearest, routeListed, routeSpread, routeRotate),
		share:     r.Int(PropShare, 0, maxShare, defaultShare),
		timeout:   r.Milliseconds(PropTimeout, defaultTimeout),
		token:     r.Text(PropToken, ""),
		walletDNS: r.Text(PropWallet, ""),
		table:     r.Text(database.PropTable, ""),
	}
	return s, r.Err()
}
