// Package topology describes fragmented clouds: sites, the nodes at them and
// the links between the nodes. It is pure data and computes; nothing here touches
// the machine.
package topology

import (
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
