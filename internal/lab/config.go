package lab

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/install"
	"skerry/internal/lab/overlay"
	"skerry/internal/machine"
	"skerry/internal/topology"
)

type Config struct {
	// Name is unique in a state directory: lower-case letters, digits and hyphens, at most 40 bytes, starting with a
	// letter.
	Name     string
	Topology topology.Topology
	// Engine is "netem", "userspace", or "auto" (also ""): netem if the kernel has it.
	Engine string
	// StateDir holds the journals of labs.
	StateDir string
	// DataDir holds the directories of nodes. It needs space for databases.
	DataDir string
	// Exe is the skerry program for agents.
	Exe string
	// Overlay routes packets; nil for static routes over the first link of each pair.
	Overlay overlay.Overlay
	// Members are the nodes that run the database, behind the topology's service and on its volumes; nil for all nodes
	// except clients.
	Members []string
	// Ports are the members' ports, the clients' first. The service's expose is added.
	Ports []int
	// Balancer is the program of service: central; see service.FindBalancer.
	Balancer install.Installation
	// Scale is a factor on every latency of the topology.
	Scale float64
	Seed  uint64
	// RealLinks adds no emulation to links between machines. ErrInvalid if all nodes are on one machine.
	RealLinks bool
	// Ephemeral labs end with their process: if it dies without Down, the next Sweep clears them.
	Ephemeral bool
	// Log receives debug messages; default none.
	Log *slog.Logger
	// Progress, if set, receives the progress of Up; calls are sequential.
	Progress func(stage string, done, total int)

	// Machine hosts the lab; nil for this machine with the directories above.
	Machine machine.Machine
	// PrepareNodes, if set, installs programs on nodes before any node runs one.
	PrepareNodes func(ctx context.Context, l *Lab) error
}

const maxName = 40 // bytes

// Names become parts of paths and namespaces, and those of nodes entries of /etc/hosts.
var (
	validName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)
	validNode = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
)

func (c *Config) setDefaults() {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = func(string, int, int) {}
	}
}

func (c *Config) check() error {
	if !validName.MatchString(c.Name) {
		return advice.With(fmt.Errorf("%w: name %q", ErrInvalid, c.Name),
			"use lower-case letters, digits and hyphens, starting with a letter, at most %d", maxName)
	}
	if len(c.Topology.Nodes) == 0 {
		return fmt.Errorf("%w: topology has no nodes", ErrInvalid)
	}
	if n := len(c.Topology.Nodes); n > maxNodes {
		return fmt.Errorf("%w: %d nodes, at most %d are possible", ErrInvalid, n, maxNodes)
	}
	nodes := map[string]bool{}
	for _, n := range c.Topology.Nodes {
		if !validNode.MatchString(n.Name) {
			return fmt.Errorf("%w: invalid node name %q", ErrInvalid, n.Name)
		}
		if nodes[n.Name] {
			return fmt.Errorf("%w: duplicate node %s", ErrInvalid, n.Name)
		}
		nodes[n.Name] = true
	}
	links := map[string]bool{}
	for _, l := range c.Topology.Links {
		switch {
		case links[l.ID]:
			return fmt.Errorf("%w: duplicate link %s", ErrInvalid, l.ID)
		case l.A == l.B || !nodes[l.A] || !nodes[l.B]:
			return fmt.Errorf("%w: link %s needs two nodes, got %q and %q", ErrInvalid, l.ID, l.A, l.B)
		}
		links[l.ID] = true
	}
	if _, err := os.Stat(c.Exe); err != nil {
		return fmt.Errorf("%w: agent program: %w", ErrInvalid, err)
	}
	return nil
}

// links are the links of the topology at the requested scale.
func (c *Config) links() (linksState, error) {
	s := linksState{Links: make([]Link, len(c.Topology.Links))}
	for i, l := range c.Topology.Links {
		s.Links[i] = Link{ID: l.ID, A: l.A, B: l.B, AB: l.AB, BA: l.BA, BaseAB: l.AB, BaseBA: l.BA, Device: deviceName(i)}
		if c.Topology.Encryption == topology.WireGuard {
			s.Links[i].Tunnel = tunnelName(i)
		}
	}
	return s, s.scale(c.Scale)
}

// SanitizeName derives the name of a lab from another name, such as that of a topology.
func SanitizeName(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', b.Len() > 0 && r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.TrimRight(b.String()[:min(b.Len(), maxName)], "-")
	if name == "" {
		return "lab"
	}
	return name
}

// CheckWholeMachines reports why nodes of a topology cannot be a whole machine each, with its network, disk and kernel.
func CheckWholeMachines(t topology.Topology, nodes []string) error {
	if len(nodes) == 0 {
		return nil
	}
	names := strings.Join(nodes, ", ")
	switch {
	case t.Overlay.Routed():
		return wholeMachineError(names, "overlay: "+t.Overlay.Kind, "daemons would change the machine's routes")
	case t.Service.Enabled():
		return wholeMachineError(names, "service: "+t.Service.Kind, "it needs bridges and rules in a network namespace")
	}
	if len(t.TCP) > 0 {
		return wholeMachineError(names, "defaults: {tcp: ...}", "it has the machine's settings")
	}
	for _, n := range t.Nodes {
		if !slices.Contains(nodes, n.Name) {
			continue
		}
		switch {
		case n.Flavor != nil:
			return wholeMachineError(n.Name, "a flavor", "it has the machine's resources")
		case n.CPU > 0 || n.Memory > 0:
			return wholeMachineError(n.Name, "a limit of cpu or memory", "it has the machine's resources")
		case t.Volume.Enabled() && n.Role != topology.Client:
			return wholeMachineError(n.Name, "volumes: "+t.Volume.Kind, "its directory is on the machine's disk")
		}
	}
	return nil
}

func wholeMachineError(nodes, what, why string) error {
	err := fmt.Errorf("%w: whole machine %s does not allow %s: %s", ErrInvalid, nodes, what, why)
	return advice.With(err, "remove it, or whole: true of the machine")
}

// UnenforcedLimits describes the limits of flavors that the machines do not enforce.
func (l *Lab) UnenforcedLimits() []string {
	var out []string
	for _, lack := range l.part.Facts().Unenforced {
		flavored := func(n topology.Node) bool { return n.Name == lack.Node && n.Flavor != nil }
		switch {
		case !slices.ContainsFunc(l.state.Topology.Nodes, flavored):
		case lack.Limit == "":
			out = append(out, fmt.Sprintf("%s is not limited: %s", lack.Node, lack.Why))
		default:
			out = append(out, fmt.Sprintf("%s of %s is not limited: %s", lack.Limit, lack.Node, lack.Why))
		}
	}
	return out
}
