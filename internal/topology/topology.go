// Package topology describes fragmented clouds: sites, their nodes, and the links between nodes. It holds data and pure
// computations. Apart from reading topology files it does not touch the machine.
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

// Topology is an emulated cloud.
type Topology struct {
	Name  string `json:"name"`
	Sites []Site `json:"sites"`
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
	// Encryption is WireGuard if a tunnel encrypts each link, else "".
	Encryption string `json:"encryption,omitempty"`
	// Overlay routes packets over the links.
	Overlay Overlay `json:"overlay,omitzero"`
	// Service is the service networking in front of the database, Volume the file system of its data.
	Service Service `json:"service,omitzero"`
	Volume  Volume  `json:"volume,omitzero"`
	// TCP holds kernel settings of nodes, by name without the prefix "net.ipv4.tcp_".
	TCP map[string]string `json:"tcp,omitempty"`
}

// WireGuard is the value of Topology.Encryption for encrypted links.
const WireGuard = "wireguard"

// Site is a datacentre.
type Site struct {
	Name string `json:"name"`
	// Lat and Lon are in degrees. Located is false if the site has no coordinates.
	Lat     float64 `json:"lat,omitempty"`
	Lon     float64 `json:"lon,omitempty"`
	Located bool    `json:"located,omitempty"`
	// Local is the quality of one direction between two nodes of this site.
	Local link.Quality `json:"local"`
}

// Role is the purpose of a node.
type Role string

// Roles of nodes.
const (
	Data   Role = "data"   // runs a member of the database
	Client Role = "client" // runs the load driver
)

// Node is one host at a site.
type Node struct {
	Name string `json:"name"`
	Site string `json:"site"`
	Role Role   `json:"role"`
	// CPU is a quota in cores, Memory a limit in bytes. 0 is no limit.
	CPU    float64 `json:"cpu,omitempty"`
	Memory int64   `json:"memory,omitempty"`
	// Flavor holds further limits; nil for none.
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

// ErrClient is returned for a client that cannot be placed at the requested site.
var ErrClient = errors.New("client cannot be placed")

// ClientName is the node that WithClient adds.
const ClientName = "client"

// PoolClientName returns the name of the client node of a workload pool.
func PoolClientName(pool string) string { return ClientName + "-" + pool }

// IsClient reports whether a node name is that of a load driver.
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

// ScaleQuality returns q with latency and jitter times factor. Their ratio stays the same, so that a valid jitter
// remains valid.
func ScaleQuality(q link.Quality, factor float64) link.Quality {
	q.Latency = time.Duration(math.Round(float64(q.Latency) * factor))
	q.Jitter = time.Duration(math.Floor(float64(q.Jitter) * factor))
	return q
}

// WithClient adds the node "client" at a site; "" is the site of the first data node. AddClient describes its links.
// A topology that already has a client node is returned unchanged.
func WithClient(t Topology, site string) (Topology, error) {
	if slices.ContainsFunc(t.Nodes, func(n Node) bool { return n.Role == Client }) {
		if site != "" {
			return t, advice.With(fmt.Errorf("%w at %q: the topology already has a client node", ErrClient, site), "remove client.site")
		}
		return t, nil
	}
	return AddClient(t, ClientName, site)
}

// AddClient adds a client node at a site; "" is the site of the first data node. The client is linked to the data nodes
// of its site with the site's local quality. Its links to other data nodes copy those of the site's first data node.
// With a routed overlay the client has links within its site only, and the overlay routes its packets.
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
		return t, advice.With(fmt.Errorf("%w: a node or site has the name %q", ErrClient, name), "rename the node or site")
	}
	s := t.Sites[slices.IndexFunc(t.Sites, func(s Site) bool { return s.Name == here.Site })]
	neighbours := map[string][2]link.Quality{} // to and from the neighbour
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
			continue // the overlay routes, or no link exists
		}
		links = append(links, Link{ID: LinkID(client.Name, n.Name), A: client.Name, B: n.Name, AB: q[0], BA: q[1]})
	}
	t.Nodes, t.Links = append(slices.Clone(t.Nodes), client), links
	return t, nil
}

// FindDisconnected returns two of the named nodes without a path between them. Paths may use all nodes.
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

// IsBridge reports whether the topology is disconnected without link id and the links that are down.
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
	err := fmt.Errorf("%w at %q: the site has no data node", ErrClient, site)
	if near := suggest.Nearest(site, with); near != "" {
		return advice.With(err, "did you mean %q?", near)
	}
	if len(with) > 12 {
		with = append(with[:12:12], "...")
	}
	return advice.With(err, "sites with data nodes are %v", with)
}
