package hydra

import (
	"errors"
	"time"

	"skerry/internal/database"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/deploy"
)

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
	}
	return s, r.Err()
}
