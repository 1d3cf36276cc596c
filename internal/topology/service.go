package topology

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"skerry/internal/base/unit"
)

// ServiceSpec is how an orchestrator's service networking leads clients to the members of
// the database.
type ServiceSpec struct {
	// Kind is none, the default, for processes with their node's address; host-port for
	// containers whose ports are published on their node's address; node-port for containers
	// behind a port that every node forwards; service-ip for containers on a network of their
	// own behind a virtual address; central for one HAProxy in front.
	Kind string `yaml:"kind" json:"kind,omitempty" jsonschema:"enum=none,enum=host-port,enum=node-port,enum=service-ip,enum=central"`
	// Name is the service's name in the network, NAME.skerry.internal; db where it is left out.
	Name string `yaml:"name" json:"name,omitempty"`
	// Members is own, the default, where every member has a service of its own, by whose
	// address the others and clients know it, or shared where one service leads to all members.
	Members string `yaml:"members" json:"members,omitempty" jsonschema:"enum=own,enum=shared"`
	// Ports is how host-port chooses ports: static, the default, for the container's own
	// numbers, auto for free ones of the range.
	Ports string `yaml:"ports" json:"ports,omitempty" jsonschema:"enum=static,enum=auto"`
	// Publish says which ports are published as which, HOST:CONTAINER: for host-port on the
	// node of each member, for node-port and central that of the service for all members.
	Publish []string `yaml:"publish" json:"publish,omitempty" jsonschema:"example=7000:6379"`
	// Range is where ports are taken from that nothing else decides; 30000-32767, as
	// Kubernetes has it, where it is left out.
	Range string `yaml:"range" json:"range,omitempty" jsonschema:"example=30000-32767"`
	// Expose lists further ports of the containers. In an experiment those of the
	// database are known; in a lab by hand they are these, the clients' first.
	Expose []int `yaml:"expose" json:"expose,omitempty"`
	// Balance is how node-port, service-ip and central choose a member for a connection:
	// random, the default, or round-robin.
	Balance string `yaml:"balance" json:"balance,omitempty" jsonschema:"enum=random,enum=round-robin"`
	// Check is how often members are tried, so that the shared service leads to none that
	// does not answer; 0 is never.
	Check *unit.Duration `yaml:"check" json:"check,omitempty" jsonschema:"default=1s"`
	// On is the node that central's HAProxy runs on; left out, the first data node.
	On string `yaml:"on" json:"on,omitempty"`
}

// Shorthand: "service: node-port" is "service: {kind: node-port}".
func (ServiceSpec) Shorthand() string { return "kind" }

// VolumeSpec is what the directories of data nodes are on.
type VolumeSpec struct {
	// Kind is none, the default, for a plain directory; bind for a directory mounted there;
	// overlay for an overlayfs over an empty lower directory; loop for an ext4 file system in
	// a file.
	Kind string `yaml:"kind" json:"kind,omitempty" jsonschema:"enum=none,enum=bind,enum=overlay,enum=loop"`
	// Size is the size of a loop volume. The file is sparse.
	Size *unit.Bytes `yaml:"size" json:"size,omitempty" jsonschema:"default=2GiB"`
}

// Shorthand: "volumes: loop" is "volumes: {kind: loop}".
func (VolumeSpec) Shorthand() string { return "kind" }

// Kinds of service networking.
const (
	NoService = "none"
	HostPort  = "host-port"
	NodePort  = "node-port"
	ServiceIP = "service-ip"
	Central   = "central"
)

// Ways that members stand behind services.
const (
	Own    = "own"
	Shared = "shared"
)

// Service is how clients are led to members. The zero value is no service.
type Service struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Members string `json:"members"`
	// Auto says that host-port takes its ports from the range.
	Auto    bool          `json:"auto,omitempty"`
	Publish map[int]int   `json:"publish,omitempty"` // by the container's port
	Low     int           `json:"low"`               // first port of the range
	High    int           `json:"high"`              // and the last
	Expose  []int         `json:"expose,omitempty"`
	Balance string        `json:"balance"`
	Check   time.Duration `json:"check_ns,omitempty"`
	On      string        `json:"on,omitempty"`
}

// Enabled tells whether there is a service at all.
func (s Service) Enabled() bool { return s.Kind != "" && s.Kind != NoService }

// PerMember tells whether members are known by services of their own.
func (s Service) PerMember() bool { return s.Enabled() && s.Members == Own }

// Kinds of volumes.
const (
	NoVolume      = "none"
	BindVolume    = "bind"
	OverlayVolume = "overlay"
	LoopVolume    = "loop"
)

// Volume is what the directories of data nodes are on. The zero value is what the lab's
// own directory is on.
type Volume struct {
	Kind string `json:"kind"`
	Size int64  `json:"size_bytes,omitempty"`
}

// Enabled tells whether there is a volume at all.
func (v Volume) Enabled() bool { return v.Kind != "" && v.Kind != NoVolume }

// What holds where nothing is said.
const (
	defaultServiceName = "db"
	defaultRange       = "30000-32767" // Kubernetes' node ports
	defaultBalance     = "random"
	defaultCheck       = time.Second
	defaultVolume      = 2 << 30
	leastVolume        = 16 << 20 // less than any database starts in
	maxPort            = 65535
)

func (b *builder) addService() {
	s := b.spec.Service
	if s.Kind == "" || s.Kind == NoService {
		if s.Kind = ""; !reflect.ValueOf(s).IsZero() {
			b.fail("service", "this tunes a service, and there is none", "write service: {kind: service-ip, ...}")
		}
		return
	}
	v := Service{Kind: s.Kind, Name: cmp.Or(s.Name, defaultServiceName), Members: cmp.Or(s.Members, Own), Auto: s.Ports == "auto",
		Expose: slices.Clone(s.Expose), Balance: cmp.Or(s.Balance, defaultBalance), Check: defaultCheck, On: s.On}
	if s.Check != nil {
		v.Check = time.Duration(*s.Check)
	}
	if !validName.MatchString(v.Name) || strings.ContainsAny(v.Name, "._") {
		b.fail("service.name", fmt.Sprintf("%q cannot be the name of a host", v.Name), "use letters, digits and hyphens")
	}
	if s.Kind == HostPort && v.Members == Shared {
		b.fail("service.members", "host ports publish every member by itself", "leave it out, or take node-port, service-ip or central")
	}
	if s.Kind != HostPort && s.Ports != "" {
		b.fail("service.ports", "only host-port chooses between static and automatic ports", "leave it out; node-port and central take theirs from the range")
	}
	if s.Kind == ServiceIP && len(s.Publish) > 0 {
		b.fail("service.publish", "a virtual address has the containers' own ports", "leave it out")
	}
	if s.Kind != Central && s.On != "" {
		b.fail("service.on", "only central has a node of its own", "leave it out")
	}
	if _, known := b.nodes[s.On]; s.On != "" && s.On != ClientName && !known {
		b.fail("service.on", fmt.Sprintf("there is no node %s", s.On), "")
	}
	b.parsePortRange(&v, cmp.Or(s.Range, defaultRange))
	b.parsePublish(&v, s.Publish)
	for i, p := range v.Expose {
		if p < 1 || p > maxPort || slices.Contains(v.Expose[:i], p) {
			b.fail(fmt.Sprintf("service.expose[%d]", i), fmt.Sprintf("%d is no further port", p), "ports are 1 to 65535, each named once")
		}
	}
	b.t.Service = v
}

func (b *builder) parsePortRange(v *Service, text string) {
	low, high, ok := strings.Cut(text, "-")
	var errLow, errHigh error
	v.Low, errLow = strconv.Atoi(strings.TrimSpace(low))
	v.High, errHigh = strconv.Atoi(strings.TrimSpace(high))
	if !ok || errLow != nil || errHigh != nil || v.Low < 1 || v.High > maxPort || v.Low > v.High {
		b.fail("service.range", fmt.Sprintf("%q is no range of ports", text), "write 30000-32767")
	}
}

func (b *builder) parsePublish(v *Service, pairs []string) {
	as := map[int]int{} // the container's port, by that it is published as
	for i, text := range pairs {
		path := fmt.Sprintf("service.publish[%d]", i)
		host, container, ok := strings.Cut(text, ":")
		h, errHost := strconv.Atoi(host)
		c, errContainer := strconv.Atoi(container)
		if !ok || errHost != nil || errContainer != nil || min(h, c) < 1 || max(h, c) > maxPort {
			b.fail(path, fmt.Sprintf("%q publishes no port", text), "write HOST:CONTAINER, such as 7000:6379")
			continue
		}
		if other, taken := as[h]; taken {
			b.fail(path, fmt.Sprintf("port %d is published for %d already, and cannot be for %d too", h, other, c), "choose another port")
		}
		if other, twice := v.Publish[c]; twice {
			b.fail(path, fmt.Sprintf("port %d is published as %d already", c, other), "name each port of the containers once")
		}
		as[h] = c
		if v.Publish == nil {
			v.Publish = map[int]int{}
		}
		v.Publish[c] = h
	}
}

func (b *builder) addVolumes() {
	s := b.spec.Volumes
	v := Volume{Kind: s.Kind}
	if s.Kind == LoopVolume {
		v.Size = defaultVolume
	}
	if s.Size != nil {
		if v.Size = int64(*s.Size); s.Kind != LoopVolume {
			b.fail("volumes.size", "only loop volumes have a size", "write volumes: {kind: loop, size: 2GiB}")
		} else if v.Size < leastVolume {
			b.fail("volumes.size", fmt.Sprintf("%v are too few for a file system with a database on it", *s.Size), "give 16MiB or more")
		}
	}
	if v.Enabled() {
		b.t.Volume = v
	}
}

// OverlaySpec is how packets find their way over the links.
type OverlaySpec struct {
	// Kind is direct, the default, for the first link of each pair alone, or an overlay by its name.
	Kind string `yaml:"kind" json:"kind,omitempty"`
	// Settings tune overlays, each under its name: "babel: {hello: 40ms}". What they mean is the
	// overlay's to say.
	Settings map[string]map[string]any `yaml:",rest" json:"-"`
}

// Shorthand: "overlay: babel" is "overlay: {kind: babel}".
func (OverlaySpec) Shorthand() string { return "kind" }

// MarshalJSON has the keys of the file.
func (s OverlaySpec) MarshalJSON() ([]byte, error) {
	all := make(map[string]any)
	if s.Kind != "" {
		all["kind"] = s.Kind
	}
	for name, settings := range s.Settings {
		all[name] = settings
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("writing the overlay as JSON: %w", err)
	}
	return data, nil
}

// Overlay is how packets find their way over the links of a topology. The zero value is
// direct.
type Overlay struct {
	Kind string `json:"kind"`
	// Settings are those of overlays by their names: Kind's, and others', which are a mistake.
	Settings map[string]map[string]any `json:"settings,omitempty"`
}

// Direct is the absence of an overlay.
const Direct = "direct"

// Routed tells whether nodes pass on packets of others.
func (o Overlay) Routed() bool { return o.Kind != "" && o.Kind != Direct }

func (b *builder) addOverlay() {
	b.t.Overlay = Overlay{Kind: b.spec.Overlay.Kind, Settings: b.spec.Overlay.Settings}
	if b.spec.Encryption == WireGuard {
		b.t.Encryption = WireGuard
	}
}
