// Package topology describes fragmented clouds: sites, the nodes at them and
// the links between the nodes. It is pure data and computes; nothing here touches
// the machine.
package topology

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/suggest"
	"skerry/internal/link"
	"skerry/internal/topology/flavor"
)

// Topology is a whole emulated cloud.
type Topology struct {
	Name  string `json:"name"`
	Sites []Site `json:"sites"`
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
	// Encryption is WireGuard where a tunnel encrypts what goes over each link, else "".
	Encryption string `json:"encryption,omitempty"`
	// Overlay is how packets find their way over the links.
	Overlay Overlay `json:"overlay,omitzero"`
	// Service leads clients to the database, and Volume is what its data lies on.
	Service Service `json:"service,omitzero"`
	Volume  Volume  `json:"volume,omitzero"`
	// TCP holds the kernel settings of nodes that the topology gives, by their names without "net.ipv4.tcp_".
	TCP map[string]string `json:"tcp,omitempty"`
}

// WireGuard encrypts links.
const WireGuard = "wireguard"

// Site is a datacentre: a place where nodes stand.
type Site struct {
	Name string `json:"name"`
	// Lat and Lon are degrees; Located says whether they were given.
	Lat     float64 `json:"lat,omitempty"`
	Lon     float64 `json:"lon,omitempty"`
	Located bool    `json:"located,omitempty"`
	// Local is one direction between two nodes of this site.
	Local link.Quality `json:"local"`
}

// Role tells what a node is for.
type Role string

// Roles of nodes.
const (
	Data   Role = "data"   // carries a member of the database
	Client Role = "client" // carries the load driver
)

// Node is one host at a site.
type Node struct {
	Name string `json:"name"`
	Site string `json:"site"`
	Role Role   `json:"role"`
	// CPU is a quota in cores, 0 for none. Memory is in bytes, 0 for no limit.
	CPU    float64 `json:"cpu,omitempty"`
	Memory int64   `json:"memory,omitempty"`
	// Flavor is what else limits it; nil for nothing.
	Flavor *flavor.Flavor `json:"flavor,omitempty"`
}

// Link is one connection between two nodes.
type Link struct {
	ID string       `json:"id"` // unique: "A~B", "A~B#1" where the pair has several, or a name of its own
	A  string       `json:"a"`  // node
	B  string       `json:"b"`  // node
	AB link.Quality `json:"ab"`
	BA link.Quality `json:"ba"`
}

// ErrClient says that a client cannot stand where it was asked for.
var ErrClient = errors.New("client cannot be placed")

// ClientName is the node that WithClient adds.
const ClientName = "client"

// PoolClientName is the client node of one of several workloads that come from nodes of their own.
func PoolClientName(pool string) string { return ClientName + "-" + pool }

// IsClient tells by its name the load driver's node, or one of several, from those of the database.
func IsClient(node string) bool {
	return node == ClientName || strings.HasPrefix(node, PoolClientName(""))
}

// Scale returns the topology with every latency and jitter times factor.
func Scale(t Topology, factor float64) Topology {
	t.Links = slices.Clone(t.Links)
	for i := range t.Links {
		l := &t.Links[i]
		l.AB, l.BA = ScaleQuality(l.AB, factor), ScaleQuality(l.BA, factor)
	}
	return t
}

// ScaleQuality returns a quality with its latency and jitter times factor: their ratio stays, so
// that a jitter which is possible remains so.
func ScaleQuality(q link.Quality, factor float64) link.Quality {
	q.Latency = time.Duration(math.Round(float64(q.Latency) * factor))
	q.Jitter = time.Duration(math.Floor(float64(q.Jitter) * factor))
	return q
}

// WithClient adds the node "client" at a site, a host of its own there, linked to every
// data node: to those of its site as hosts of one site are, to the others with the
// qualities of the links that the site's first data node has to them. Where an overlay
// routes, it is linked to those of its site alone: its packets go the way that theirs go.
// With site "" it stands
// at the first data node's. A topology that has a client node already is returned as it is.
func WithClient(t Topology, site string) (Topology, error) {
	if slices.ContainsFunc(t.Nodes, func(n Node) bool { return n.Role == Client }) {
		if site != "" {
			return t, advice.With(fmt.Errorf("%w at %q: the topology has a client node of its own", ErrClient, site), "leave out client.site")
		}
		return t, nil
	}
	return AddClient(t, ClientName, site)
}

// AddClient adds a client node at a site, the first one where site is "". Its links are those of the
// site's first data node.
func AddClient(t Topology, name, site string) (Topology, error) {
	var here *Node
	for i, n := range t.Nodes {
		if n.Role != Client && (site == "" || n.Site == site) {
			here = &t.Nodes[i]
			break
		}
	}
	if here == nil {
		return t, unknownSiteError(t, site)
	}
	if len(t.findNodes(name)) > 0 {
		return t, advice.With(fmt.Errorf("%w: a node or site is called %q", ErrClient, name), "call it otherwise")
	}
	s := t.Sites[slices.IndexFunc(t.Sites, func(s Site) bool { return s.Name == here.Site })]
	neighbours := map[string][2]link.Quality{} // from here and back
	for _, l := range t.Links {
		to, q := l.B, [2]link.Quality{l.AB, l.BA}
		switch here.Name {
		case l.A:
		case l.B:
			to, q = l.A, [2]link.Quality{l.BA, l.AB}
		default:
			continue
		}
		if _, redundant := neighbours[to]; !redundant {
			neighbours[to] = q
		}
	}
	client := Node{Name: name, Site: here.Site, Role: Client}
	links := slices.Clone(t.Links)
	for _, n := range t.Nodes {
		q, ok := neighbours[n.Name]
		switch {
		case n.Role == Client:
			continue
		case n.Site == client.Site:
			q = [2]link.Quality{s.Local, s.Local}
		case !ok || t.Overlay.Routed():
			continue // no way from this site to that node
		}
		links = append(links, Link{ID: LinkID(client.Name, n.Name), A: client.Name, B: n.Name, AB: q[0], BA: q[1]})
	}
	t.Nodes, t.Links = append(slices.Clone(t.Nodes), client), links
	return t, nil
}

// FindDisconnected returns two of the nodes named that no links join, over whatever other nodes.
func (t Topology) FindDisconnected(names []string) (a, b string, apart bool) {
	index := make(map[string]int, len(t.Nodes))
	for i, n := range t.Nodes {
		index[n.Name] = i
	}
	joined := newForest(len(t.Nodes))
	for _, l := range t.Links {
		joined.unite(index[l.A], index[l.B])
	}
	for _, name := range names {
		if joined.root(index[name]) != joined.root(index[names[0]]) {
			return names[0], name, true
		}
	}
	return "", "", false
}

// IsBridge tells whether the topology falls apart, or has, without a link and those that
// are down.
func (t Topology) IsBridge(id string, down map[string]bool) bool {
	index := make(map[string]int, len(t.Nodes))
	for i, n := range t.Nodes {
		index[n.Name] = i
	}
	parts, joined := len(t.Nodes), newForest(len(t.Nodes))
	for _, l := range t.Links {
		if l.ID != id && !down[l.ID] && joined.unite(index[l.A], index[l.B]) {
			parts--
		}
	}
	return parts > 1
}

func unknownSiteError(t Topology, site string) error {
	var with []string
	for _, n := range t.Nodes {
		if !slices.Contains(with, n.Site) {
			with = append(with, n.Site)
		}
	}
	err := fmt.Errorf("%w at %q: no data node stands there", ErrClient, site)
	if near := suggest.Nearest(site, with); near != "" {
		return advice.With(err, "did you mean %q?", near)
	}
	if len(with) > 12 {
		with = append(with[:12:12], "...")
	}
	return advice.With(err, "sites with data nodes are %v", with)
}
