package metadata

import (
	"errors"
	"strings"

	"skerry/internal/database"
	"skerry/internal/database/setting"
)

// Errors of settings.
var (
	// ErrOption marks an option that cannot be used.
	ErrOption = errors.New("bad option of metadata")
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

// options are a cluster's settings.
type options struct {
	port, peerPort int // of a node's first replica; its next has the next
	servers        string
	replicas       int    // of each server; 0: all there are (servers one, site), or 1
	root           string // the node whose server has the root
}

func parseOptions(given database.Options) (options, error) {
	r := setting.Options(ErrOption, given, "port", "peer_port", "servers", "replicas", "root")
	o := options{
		port:     r.Int("port", 1, 65000, defaultPort),
		peerPort: r.Int("peer_port", 1, 65000, defaultPeerPort),
		servers:  r.Choice("servers", serversOne, serversOne, serversSite, serversNode),
		replicas: r.Int("replicas", 0, 64, 0),
		root:     r.Text("root", ""),
	}
	if gap := o.port - o.peerPort; r.Err() == nil && -slots < gap && gap < slots {
		r.Refuse("peer_port", "a port that is not within 64 of port")
	}
	return o, r.Err()
}

// slots is how many replicas a node has at most.
const slots = 64

// resizable tells whether members can join and leave.
func (o options) resizable() bool { return o.servers == serversOne && o.replicas != 1 }

// Properties of the client.
const (
	PropAddresses = "metadata.addresses" // host:port,host:port,...: which is asked first, and so on
	PropAreas     = "metadata.areas"     // names of areas, the nearest first, for workloads on trees
)

// Properties lists the client's properties.
func Properties() []string { return []string{PropAddresses, PropAreas} }

// settings are the client's properties, understood.
type settings struct {
	addresses string
	areas     []string
}

func parseSettings(p map[string]string) (settings, error) {
	r := setting.Properties(ErrProperty, "metadata.", p, Properties()...)
	s := settings{addresses: strings.Join(r.Addresses(PropAddresses, defaultPort), ","), areas: r.List(PropAreas)}
	return s, r.Err()
}
