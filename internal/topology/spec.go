package topology

import (
	"skerry/internal/base/unit"
	"skerry/internal/link"
)

// Spec is the YAML form of a topology: a preset, a file, or explicit sites, nodes and links.
// The latency between two nodes comes from the first of these that gives it: links, matrix, the coordinates
// of the sites, defaults.
type Spec struct {
	// From names the base: a preset such as azure8, ring:16 or mesh:8, or the path of a topology file (relative to
	// this file). The other keys extend or override the base.
	From string `yaml:"from" json:"from,omitempty" jsonschema:"example=azure8,example=ring:16,example=topology.yaml"`
	// Name of the topology in messages and reports.
	Name string `yaml:"name" json:"name,omitempty"`
	// Sites are the datacentres. Default: the sites that the matrix names.
	Sites []SiteSpec `yaml:"sites" json:"sites,omitempty"`
	// Nodes are the hosts. Default: the number of nodes that each site gives.
	Nodes []NodeSpec `yaml:"nodes" json:"nodes,omitempty"`
	// Links are individual links with their own qualities.
	Links []LinkSpec `yaml:"links" json:"links,omitempty"`
	// Mesh draws the links at random. Pairs of nodes may get several links.
	Mesh MeshSpec `yaml:"mesh" json:"mesh,omitzero"`
	// Overlay routes packets between nodes that several links or no link join. Databases bind to the single address
	// of their node and do not see the overlay.
	Overlay OverlaySpec `yaml:"overlay" json:"overlay,omitzero"`
	// Encryption is none (default), or wireguard for one tunnel over each link.
	Encryption string `yaml:"encryption" json:"encryption,omitempty" jsonschema:"enum=none,enum=wireguard"`
	// Service emulates the service networking of an orchestrator in front of the database.
	Service ServiceSpec `yaml:"service" json:"service,omitzero"`
	// Volumes selects the file system under the directories of data nodes.
	Volumes VolumeSpec `yaml:"volumes" json:"volumes,omitzero"`
	// Connect selects the linked pairs: full links every pair, ring links each node to the next and the last to the
	// first, none links only the pairs under links. Default: full, or none if only links gives latencies.
	Connect string `yaml:"connect" json:"connect,omitempty" jsonschema:"enum=full,enum=ring,enum=none"`
	// Matrix holds tables of latency and bandwidth between sites.
	Matrix MatrixSpec `yaml:"matrix" json:"matrix,omitzero"`
	// Distance controls how coordinates become latencies.
	Distance DistanceSpec `yaml:"distance" json:"distance,omitzero"`
	// Defaults apply to every node and link that does not override them.
	Defaults DefaultsSpec `yaml:"defaults" json:"defaults,omitzero"`
}

func (Spec) Shorthand() string { return "from" }

// SiteSpec is one datacentre.
type SiteSpec struct {
	// Name of the site.
	Name string `yaml:"name" json:"name" jsonschema:"required"`
	// Lat is the latitude in degrees, north positive.
	Lat *float64 `yaml:"lat" json:"lat,omitempty" jsonschema:"minimum=-90,maximum=90"`
	// Lon is the longitude in degrees, east positive.
	Lon *float64 `yaml:"lon" json:"lon,omitempty" jsonschema:"minimum=-180,maximum=180"`
	// Nodes is the number of nodes at the site. A single node has the site's name; several are SITE-1, SITE-2 ...
	Nodes *int `yaml:"nodes" json:"nodes,omitempty" jsonschema:"minimum=0,maximum=4096,default=1"`
}

func (SiteSpec) Shorthand() string { return "name" }

// NodeSpec is one host.
type NodeSpec struct {
	// Name of the node.
	Name string `yaml:"name" json:"name" jsonschema:"required"`
	// Site of the node. Default: a new site with the node's name.
	Site string `yaml:"site" json:"site,omitempty"`
	// Role is data for a node that runs a database member, client for the node that runs the load driver.
	Role Role `yaml:"role" json:"role,omitempty" jsonschema:"enum=data,enum=client"`
	// CPU is a quota in cores; 0 is no limit.
	CPU *float64 `yaml:"cpu" json:"cpu,omitempty" jsonschema:"minimum=0"`
	// Memory is a limit; 0 is no limit.
	Memory *unit.Bytes `yaml:"memory" json:"memory,omitempty"`
	// Flavor is the cloud machine type of the node. The keys cpu and memory override its values.
	Flavor *FlavorSpec `yaml:"flavor" json:"flavor,omitempty"`
}

func (NodeSpec) Shorthand() string { return "name" }

// LinkSpec is one link, or all links between two sites.
type LinkSpec struct {
	// Name adds a further link between the pair. Without a name, the entry changes the pair's unnamed link, whose ID
	// is A~B, or A~B#1 if the pair has several links.
	Name string `yaml:"name" json:"name,omitempty"`
	// Between names the two ends: two nodes, or two sites for every pair of their nodes.
	Between []string `yaml:"between" json:"between" jsonschema:"required,minItems=2,maxItems=2"`
	// Quality of both directions.
	QualitySpec `yaml:",inline"`
	// Forward overrides the quality from the first end to the second.
	Forward *QualitySpec `yaml:"forward" json:"forward,omitempty"`
	// Back overrides the quality from the second end to the first.
	Back *QualitySpec `yaml:"back" json:"back,omitempty"`
}

// QualitySpec changes the quality of a link. Omitted keys keep their value.
type QualitySpec struct {
	// Latency is the one-way latency.
	Latency *unit.Duration `yaml:"latency" json:"latency,omitempty"`
	// RTT is the round-trip time as ping shows it. Each direction gets half of it.
	RTT *unit.Duration `yaml:"rtt" json:"rtt,omitempty"`
	// Bandwidth counts the bytes of IP packets, headers included.
	Bandwidth *unit.Bandwidth `yaml:"bandwidth" json:"bandwidth,omitempty"`
	// Jitter is the standard deviation of the latency, or the half-width of a uniform distribution. It keeps the order
	// of packets. Its maximum is half of the latency (normal), the latency (uniform), 1.2 times (pareto) or 0.55 times
	// the latency (paretonormal).
	Jitter *unit.Duration `yaml:"jitter" json:"jitter,omitempty"`
	// Distribution is the shape of the jitter.
	Distribution link.Distribution `yaml:"distribution" json:"distribution,omitempty" jsonschema:"enum=normal,enum=uniform,enum=pareto,enum=paretonormal"`
	// Loss is the share of packets lost independently of each other, or a model of losses in bursts.
	Loss *LossSpec `yaml:"loss" json:"loss,omitempty"`
	// Duplicate is the share of packets delivered twice.
	Duplicate *unit.Fraction `yaml:"duplicate" json:"duplicate,omitempty"`
	// Reorder is the share of packets that overtake the waiting packets.
	Reorder *unit.Fraction `yaml:"reorder" json:"reorder,omitempty"`
	// Corrupt is the share of packets delivered with one flipped bit.
	Corrupt *unit.Fraction `yaml:"corrupt" json:"corrupt,omitempty"`
	// Queue bounds the packets that wait for bandwidth. Default: derived from bandwidth and latency.
	Queue *unit.Bytes `yaml:"queue" json:"queue,omitempty"`
}

func (QualitySpec) Alternatives() [][]string { return [][]string{{"latency", "rtt"}} }

// MatrixSpec holds tables between sites: the path of a CSV file (relative to this file), or the table itself as a block
// of text. The first row and the first column name the sites in the same order. The corner may give the unit of
// cells without a unit (ms, mbit). An empty half mirrors the other half.
type MatrixSpec struct {
	// Latency holds round-trip times as ping shows them. Each direction gets half of the cell. Both halves must agree
	// unless average is true. The default unit is ms.
	Latency string `yaml:"latency" json:"latency,omitempty" jsonschema:"example=latency.csv"`
	// Average uses the mean of the two halves of latency where they differ, as in measured round-trip times.
	Average bool `yaml:"average" json:"average,omitempty"`
	// Bandwidth is from the row's site to the column's site. The default unit is mbit.
	Bandwidth string `yaml:"bandwidth" json:"bandwidth,omitempty" jsonschema:"example=bandwidth.csv"`
}

// DistanceSpec converts coordinates into latencies: great circle x detour / speed of light in fibre.
type DistanceSpec struct {
	// Detour is the length of the fibre divided by the length of the great circle.
	Detour *float64 `yaml:"detour" json:"detour,omitempty" jsonschema:"minimum=1,maximum=10,default=1.5"`
}

// DefaultsSpec applies to every node and link that does not override it.
type DefaultsSpec struct {
	// Quality of links between sites. Latency and bandwidth apply to pairs without a value from links, matrix or
	// coordinates. The other keys apply to all links between sites.
	QualitySpec `yaml:",inline"`
	// SiteRTT is the round-trip time between two nodes of one site.
	SiteRTT *unit.Duration `yaml:"site_rtt" json:"site_rtt,omitempty" jsonschema:"default=0.5ms"`
	// SiteBandwidth is the bandwidth between two nodes of one site.
	SiteBandwidth *unit.Bandwidth `yaml:"site_bandwidth" json:"site_bandwidth,omitempty" jsonschema:"default=unlimited"`
	// CPU is the quota of each node in cores; 0 is no limit.
	CPU *float64 `yaml:"cpu" json:"cpu,omitempty" jsonschema:"minimum=0"`
	// Memory is the limit of each node; 0 is no limit.
	Memory *unit.Bytes `yaml:"memory" json:"memory,omitempty"`
	// Flavor is the cloud machine type of each node. The keys cpu and memory override its values.
	Flavor *FlavorSpec `yaml:"flavor" json:"flavor,omitempty"`
	// TCP sets kernel parameters of TCP on all nodes.
	TCP TCPSpec `yaml:"tcp" json:"tcp,omitzero"`
}
