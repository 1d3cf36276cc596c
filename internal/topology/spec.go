package topology

import (
	"skerry/internal/base/unit"
	"skerry/internal/link"
)

// Spec is a topology as people write it: a preset or a file by its name, or sites, nodes
// and links of one's own. How far apart two nodes are is taken from the first of these
// that says it: links, matrix, the coordinates of the sites, defaults.
type Spec struct {
	// From is what to start from: a preset such as azure8, ring:16 or mesh:8, or the path
	// of a topology file (relative to this file). What else is given here is added to it.
	From string `yaml:"from" json:"from,omitempty" jsonschema:"example=azure8,example=ring:16,example=topology.yaml"`
	// Name is how messages and reports call the topology.
	Name string `yaml:"name" json:"name,omitempty"`
	// Sites are the datacentres. Where it is left out, they are the rows of the matrix.
	Sites []SiteSpec `yaml:"sites" json:"sites,omitempty"`
	// Nodes are the hosts. Where it is left out, every site has as many as its nodes says.
	Nodes []NodeSpec `yaml:"nodes" json:"nodes,omitempty"`
	// Links are single links, each with qualities of its own.
	Links []LinkSpec `yaml:"links" json:"links,omitempty"`
	// Mesh draws the links at random, several between a pair where there are enough.
	Mesh MeshSpec `yaml:"mesh" json:"mesh,omitzero"`
	// Overlay says how packets find their way where there are several links, or none between
	// two nodes. Databases bind to their node's one address and never know.
	Overlay OverlaySpec `yaml:"overlay" json:"overlay,omitzero"`
	// Encryption is none, the default, or wireguard for a tunnel of its own over every link.
	Encryption string `yaml:"encryption" json:"encryption,omitempty" jsonschema:"enum=none,enum=wireguard"`
	// Service is the service networking of an orchestrator, in front of the database.
	Service ServiceSpec `yaml:"service" json:"service,omitzero"`
	// Volumes are what the directories of data nodes are on.
	Volumes VolumeSpec `yaml:"volumes" json:"volumes,omitzero"`
	// Connect says which nodes are linked: full links every pair, ring each to the next
	// and the last to the first, none only the pairs under links. It is full, or none
	// where nothing but links says how far apart nodes are.
	Connect string `yaml:"connect" json:"connect,omitempty" jsonschema:"enum=full,enum=ring,enum=none"`
	// Matrix gives latency and bandwidth between sites as tables.
	Matrix MatrixSpec `yaml:"matrix" json:"matrix,omitzero"`
	// Distance is how coordinates become latencies.
	Distance DistanceSpec `yaml:"distance" json:"distance,omitzero"`
	// Defaults hold for every node and link that does not say otherwise.
	Defaults DefaultsSpec `yaml:"defaults" json:"defaults,omitzero"`
}

// Shorthand: "topology: azure8" is "topology: {from: azure8}".
func (Spec) Shorthand() string { return "from" }

// SiteSpec is one datacentre.
type SiteSpec struct {
	// Name of the site.
	Name string `yaml:"name" json:"name" jsonschema:"required"`
	// Lat is the latitude in degrees, north positive.
	Lat *float64 `yaml:"lat" json:"lat,omitempty" jsonschema:"minimum=-90,maximum=90"`
	// Lon is the longitude in degrees, east positive.
	Lon *float64 `yaml:"lon" json:"lon,omitempty" jsonschema:"minimum=-180,maximum=180"`
	// Nodes is how many nodes stand here. One is named like the site, several SITE-1, SITE-2 ...
	Nodes *int `yaml:"nodes" json:"nodes,omitempty" jsonschema:"minimum=0,maximum=4096,default=1"`
}

// Shorthand: "- Oslo" is "- {name: Oslo}".
func (SiteSpec) Shorthand() string { return "name" }

// NodeSpec is one host.
type NodeSpec struct {
	// Name of the node.
	Name string `yaml:"name" json:"name" jsonschema:"required"`
	// Site is where it stands; a node without one is a site of its own.
	Site string `yaml:"site" json:"site,omitempty"`
	// Role is data for a node that carries the database, client for the one that drives it.
	Role Role `yaml:"role" json:"role,omitempty" jsonschema:"enum=data,enum=client"`
	// CPU is a quota in cores; 0 is no limit.
	CPU *float64 `yaml:"cpu" json:"cpu,omitempty" jsonschema:"minimum=0"`
	// Memory is a limit; 0 is none.
	Memory *unit.Bytes `yaml:"memory" json:"memory,omitempty"`
	// Flavor is the node as clouds sell it; cpu and memory win over it.
	Flavor *FlavorSpec `yaml:"flavor" json:"flavor,omitempty"`
}

// Shorthand: "- n1" is "- {name: n1}".
func (NodeSpec) Shorthand() string { return "name" }

// LinkSpec is one link, or all links between two sites.
type LinkSpec struct {
	// Name makes it a link of its own, next to those that the pair has; pairs may have
	// several. Without a name it says what the pair's unnamed link is like. Its ID is A~B, or
	// A~B#1 where the pair has several links.
	Name string `yaml:"name" json:"name,omitempty"`
	// Between names the two ends: nodes, or sites for every pair of their nodes.
	Between []string `yaml:"between" json:"between" jsonschema:"required,minItems=2,maxItems=2"`
	// Quality of both directions.
	QualitySpec `yaml:",inline"`
	// Forward is what differs on the way from the first end to the second.
	Forward *QualitySpec `yaml:"forward" json:"forward,omitempty"`
	// Back is what differs on the way from the second end to the first.
	Back *QualitySpec `yaml:"back" json:"back,omitempty"`
}

// QualitySpec is what a link does to packets; what is left out stays as it is.
type QualitySpec struct {
	// Latency is one way.
	Latency *unit.Duration `yaml:"latency" json:"latency,omitempty"`
	// RTT is the round trip as ping shows it: half of it goes to each direction.
	RTT *unit.Duration `yaml:"rtt" json:"rtt,omitempty"`
	// Bandwidth counts the bytes of IP packets, headers included.
	Bandwidth *unit.Bandwidth `yaml:"bandwidth" json:"bandwidth,omitempty"`
	// Jitter spreads the latency: the standard deviation, or the half-width of a uniform distribution. It keeps the order
	// of packets and is at most half of the latency (normal), the latency (uniform), 1.2 (pareto) or 0.55 times the
	// latency (paretonormal).
	Jitter *unit.Duration `yaml:"jitter" json:"jitter,omitempty"`
	// Distribution is the shape of the jitter.
	Distribution link.Distribution `yaml:"distribution" json:"distribution,omitempty" jsonschema:"enum=normal,enum=uniform,enum=pareto,enum=paretonormal"`
	// Loss is the share of packets that are lost, each drawn on its own, or losses in bursts.
	Loss *LossSpec `yaml:"loss" json:"loss,omitempty"`
	// Duplicate is the share of packets that arrive twice.
	Duplicate *unit.Fraction `yaml:"duplicate" json:"duplicate,omitempty"`
	// Reorder is the share of packets that overtake those waiting.
	Reorder *unit.Fraction `yaml:"reorder" json:"reorder,omitempty"`
	// Corrupt is the share of packets that arrive with a flipped bit.
	Corrupt *unit.Fraction `yaml:"corrupt" json:"corrupt,omitempty"`
	// Queue bounds what waits for the bandwidth; left out, it fits bandwidth and latency.
	Queue *unit.Bytes `yaml:"queue" json:"queue,omitempty"`
}

// Alternatives: a latency is given one way or as a round trip.
func (QualitySpec) Alternatives() [][]string { return [][]string{{"latency", "rtt"}} }

// MatrixSpec holds tables between sites: the path of a CSV file (relative to this file)
// or the table itself as a block of text. The first row and the first column name the
// sites, in the same order. The corner may hold the unit of the cells (ms, mbit); cells
// without a unit of their own count in it. One half may be empty: it is the mirror of the other.
type MatrixSpec struct {
	// Latency holds round trips as ping shows them: half of a cell goes to each
	// direction. Both halves must agree, or average must be true. The unit is ms where none is given.
	Latency string `yaml:"latency" json:"latency,omitempty" jsonschema:"example=latency.csv"`
	// Average takes the mean of the two halves of latency where they differ, as those of measured
	// round trips do.
	Average bool `yaml:"average" json:"average,omitempty"`
	// Bandwidth is from the row's site to the column's. The unit is mbit where none is given.
	Bandwidth string `yaml:"bandwidth" json:"bandwidth,omitempty" jsonschema:"example=bandwidth.csv"`
}

// DistanceSpec turns coordinates into latencies: great circle x detour / speed of light in fibre.
type DistanceSpec struct {
	// Detour is how much longer the fibre is than the great circle.
	Detour *float64 `yaml:"detour" json:"detour,omitempty" jsonschema:"minimum=1,maximum=10,default=1.5"`
}

// DefaultsSpec holds for whatever does not say otherwise.
type DefaultsSpec struct {
	// Quality of links between sites. Latency and bandwidth are for pairs that neither links
	// nor matrix nor coordinates give one; the rest holds for all of them.
	QualitySpec `yaml:",inline"`
	// SiteRTT is the round trip between two nodes of one site.
	SiteRTT *unit.Duration `yaml:"site_rtt" json:"site_rtt,omitempty" jsonschema:"default=0.5ms"`
	// SiteBandwidth is the bandwidth between two nodes of one site.
	SiteBandwidth *unit.Bandwidth `yaml:"site_bandwidth" json:"site_bandwidth,omitempty" jsonschema:"default=unlimited"`
	// CPU is each node's quota in cores; 0 is no limit.
	CPU *float64 `yaml:"cpu" json:"cpu,omitempty" jsonschema:"minimum=0"`
	// Memory is each node's limit; 0 is none.
	Memory *unit.Bytes `yaml:"memory" json:"memory,omitempty"`
	// Flavor is each node as clouds sell it; cpu and memory win over it.
	Flavor *FlavorSpec `yaml:"flavor" json:"flavor,omitempty"`
	// TCP tunes the kernel's TCP on all nodes, which is the same on every machine.
	TCP TCPSpec `yaml:"tcp" json:"tcp,omitzero"`
}
