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

// ServiceSpec emulates the service networking of an orchestrator between clients and the members of the database.
type ServiceSpec struct {
	// Kind is none (default) for processes with the address of their node; host-port for containers with ports
	// published on the address of their node; node-port for containers behind a port that every node forwards;
	// service-ip for containers on a separate network behind a virtual address; central for one HAProxy in front.
	Kind string `yaml:"kind" json:"kind,omitempty" jsonschema:"enum=none,enum=host-port,enum=node-port,enum=service-ip,enum=central"`
	// Name of the service, resolved as NAME.skerry.internal. Default: db.
	Name string `yaml:"name" json:"name,omitempty"`
	// Members is own (default) for one service per member, whose address other members and clients use, or shared for
	// one service in front of all members.
	Members string `yaml:"members" json:"members,omitempty" jsonschema:"enum=own,enum=shared"`
	// Ports selects the ports of host-port: static (default) for the container's port numbers, auto for free ports of
	// the range.
	Ports string `yaml:"ports" json:"ports,omitempty" jsonschema:"enum=static,enum=auto"`
	// Publish maps ports as HOST:CONTAINER: for host-port on the node of each member, for node-port and central on the
	// service of all members.
	Publish []string `yaml:"publish" json:"publish,omitempty" jsonschema:"example=7000:6379"`
	// Range of ports for automatic choice. Default: 30000-32767, the range of Kubernetes.
	Range string `yaml:"range" json:"range,omitempty" jsonschema:"example=30000-32767"`
	// Expose lists further ports of the containers. An experiment adds the ports of its database. A lab started by hand
	// needs them here, the client port first.
	Expose []int `yaml:"expose" json:"expose,omitempty"`
	// Balance selects the member for a connection through node-port, service-ip or central: random (default) or
	// round-robin.
	Balance string `yaml:"balance" json:"balance,omitempty" jsonschema:"enum=random,enum=round-robin"`
	// Check is the interval of health checks. A shared service skips members that do not answer; 0 disables the checks.
	Check *unit.Duration `yaml:"check" json:"check,omitempty" jsonschema:"default=1s"`
	// On is the node that runs the HAProxy of central. Default: the first data node.
	On string `yaml:"on" json:"on,omitempty"`
}

func (ServiceSpec) Shorthand() string { return "kind" }

// VolumeSpec selects the file system under the directories of data nodes.
type VolumeSpec struct {
	// Kind is none (default) for a plain directory; bind for a bind mount; overlay for an overlayfs over an empty lower
	// directory; loop for an ext4 file system in a file.
	Kind string `yaml:"kind" json:"kind,omitempty" jsonschema:"enum=none,enum=bind,enum=overlay,enum=loop"`
	// Size is the size of a loop volume. The file is sparse.
	Size *unit.Bytes `yaml:"size" json:"size,omitempty" jsonschema:"default=2GiB"`
}

func (VolumeSpec) Shorthand() string { return "kind" }

// Kinds of service networking.
const (
	NoService = "none"
	HostPort  = "host-port"
	NodePort  = "node-port"
	ServiceIP = "service-ip"
	Central   = "central"
)

// Values of ServiceSpec.Members.
const (
	Own    = "own"
	Shared = "shared"
)

// Service is how clients are led to members. The zero value is no service.
type Service struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Members string `json:"members"`
	// Auto means that host-port uses ports from the range.
	Auto    bool          `json:"auto,omitempty"`
	Publish map[int]int   `json:"publish,omitempty"` // by the container's port
	Low     int           `json:"low"`               // first port of the range
	High    int           `json:"high"`              // and the last
	Expose  []int         `json:"expose,omitempty"`
	Balance string        `json:"balance"`
	Check   time.Duration `json:"check_ns,omitempty"`
	On      string        `json:"on,omitempty"`
}

// Enabled reports whether the topology has a service.
func (s Service) Enabled() bool { return s.Kind != "" && s.Kind != NoService }

// PerMember reports whether each member has its own service.
func (s Service) PerMember() bool { return s.Enabled() && s.Members == Own }

// Kinds of volumes.
const (
	NoVolume      = "none"
	BindVolume    = "bind"
	OverlayVolume = "overlay"
	LoopVolume    = "loop"
)

// Volume is the file system under the directories of data nodes. The zero value is a plain directory.
type Volume struct {
	Kind string `json:"kind"`
	Size int64  `json:"size_bytes,omitempty"`
}

// Enabled reports whether data nodes have a volume.
func (v Volume) Enabled() bool { return v.Kind != "" && v.Kind != NoVolume }

// Defaults and limits of services and volumes.
const (
	defaultServiceName = "db"
	defaultRange       = "30000-32767" // Kubernetes' node ports
	defaultBalance     = "random"
	defaultCheck       = time.Second
	defaultVolume      = 2 << 30
	leastVolume        = 16 << 20 // no database starts in less
	maxPort            = 65535
)

func (b *builder) addService() {
	s := b.spec.Service
	if s.Kind == "" || s.Kind == NoService {
		if s.Kind = ""; !reflect.ValueOf(s).IsZero() {
			b.fail("service", "service options without a service kind", "write service: {kind: service-ip, ...}")
		}
		return
	}
	v := Service{Kind: s.Kind, Name: cmp.Or(s.Name, defaultServiceName), Members: cmp.Or(s.Members, Own), Auto: s.Ports == "auto",
		Expose: slices.Clone(s.Expose), Balance: cmp.Or(s.Balance, defaultBalance), Check: defaultCheck, On: s.On}
	if s.Check != nil {
		v.Check = time.Duration(*s.Check)
	}
	if !validName.MatchString(v.Name) || strings.ContainsAny(v.Name, "._") {
		b.fail("service.name", fmt.Sprintf("invalid host name %q", v.Name), "use letters, digits and hyphens")
	}
	if s.Kind == HostPort && v.Members == Shared {
		b.fail("service.members", "host-port always publishes each member separately", "remove it, or use node-port, service-ip or central")
	}
	if s.Kind != HostPort && s.Ports != "" {
		b.fail("service.ports", "only host-port supports static or auto ports", "remove it; node-port and central use the range")
	}
	if s.Kind == ServiceIP && len(s.Publish) > 0 {
		b.fail("service.publish", "service-ip keeps the port numbers of the containers", "remove it")
	}
	if s.Kind != Central && s.On != "" {
		b.fail("service.on", "only central runs on a chosen node", "remove it")
	}
	if _, known := b.nodes[s.On]; s.On != "" && s.On != ClientName && !known {
		b.fail("service.on", fmt.Sprintf("unknown node %q", s.On), "")
	}
	b.parsePortRange(&v, cmp.Or(s.Range, defaultRange))
	b.parsePublish(&v, s.Publish)
	for i, p := range v.Expose {
		if p < 1 || p > maxPort || slices.Contains(v.Expose[:i], p) {
			b.fail(fmt.Sprintf("service.expose[%d]", i), fmt.Sprintf("port %d is invalid or listed twice", p), "list each port from 1 to 65535 once")
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
		b.fail("service.range", fmt.Sprintf("invalid port range %q", text), "write 30000-32767")
	}
}

func (b *builder) parsePublish(v *Service, pairs []string) {
	as := map[int]int{} // container port by published port
	for i, text := range pairs {
		path := fmt.Sprintf("service.publish[%d]", i)
		host, container, ok := strings.Cut(text, ":")
		h, errHost := strconv.Atoi(host)
		c, errContainer := strconv.Atoi(container)
		if !ok || errHost != nil || errContainer != nil || min(h, c) < 1 || max(h, c) > maxPort {
			b.fail(path, fmt.Sprintf("invalid port mapping %q", text), "write HOST:CONTAINER, such as 7000:6379")
			continue
		}
		if other, taken := as[h]; taken {
			b.fail(path, fmt.Sprintf("port %d is already published for %d, cannot publish it for %d", h, other, c), "choose another port")
		}
		if other, twice := v.Publish[c]; twice {
			b.fail(path, fmt.Sprintf("container port %d is already published as %d", c, other), "list each container port once")
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
			b.fail("volumes.size", "only loop volumes support a size", "write volumes: {kind: loop, size: 2GiB}")
		} else if v.Size < leastVolume {
			b.fail("volumes.size", fmt.Sprintf("size %v is too small for a file system that holds a database", *s.Size), "give 16MiB or more")
		}
	}
	if v.Enabled() {
		b.t.Volume = v
	}
}

// OverlaySpec selects the overlay that routes packets over the links.
type OverlaySpec struct {
	// Kind is direct (default), which uses only the first link of each pair, or the name of an overlay.
	Kind string `yaml:"kind" json:"kind,omitempty"`
	// Settings of overlays, each under its name: "babel: {hello: 40ms}". The overlay defines the keys.
	Settings map[string]map[string]any `yaml:",rest" json:"-"`
}

func (OverlaySpec) Shorthand() string { return "kind" }

// MarshalJSON writes the same keys as the YAML file.
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

// Overlay routes packets over the links of a topology. The zero value is Direct.
type Overlay struct {
	Kind string `json:"kind"`
	// Settings by overlay name. Settings of an overlay other than Kind are an error.
	Settings map[string]map[string]any `json:"settings,omitempty"`
}

// Direct is the absence of an overlay.
const Direct = "direct"

// Routed reports whether nodes forward packets of other nodes.
func (o Overlay) Routed() bool { return o.Kind != "" && o.Kind != Direct }

func (b *builder) addOverlay() {
	b.t.Overlay = Overlay{Kind: b.spec.Overlay.Kind, Settings: b.spec.Overlay.Settings}
	if b.spec.Encryption == WireGuard {
		b.t.Encryption = WireGuard
	}
}
