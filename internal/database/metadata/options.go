package metadata

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
)

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
