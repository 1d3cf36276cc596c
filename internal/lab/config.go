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

// Config says what lab to make.
type Config struct {
	// Name is unique among the labs of a state directory: lower-case letters,
	// digits and hyphens, at most 40 bytes, beginning with a letter.
	Name     string
	Topology topology.Topology
	// Engine is "netem", "userspace", or "auto" (also ""): netem where the kernel has it.
	Engine string
	// StateDir keeps the journals of labs; default statedir.DefaultStateDir.
	StateDir string
	// DataDir gets the directories of nodes, so it should be on a disk with room
	// for databases; default statedir.DefaultDataDir.
	DataDir string
	// Exe is the skerry program that agents are started from.
	Exe string
	// Overlay routes; nil for routes over the first link of each pair alone.
	Overlay overlay.Overlay
	// Members are the nodes that carry the database, behind the topology's service and on
	// its volumes; nil for all but clients.
	Members []string
	// Ports are those that members listen on, the clients' first. The service's expose are
	// added to them.
	Ports []int
	// Balancer is what service: central runs, as service.Find locates it.
	Balancer install.Installation
	// Scale multiplies every latency of the topology: 1 leaves them as they are, 0 is no distance.
	Scale float64
	// Seed of every random choice of the links.
	Seed uint64
	// Real leaves links between machines as they are: nothing that the topology says of them is added to
	// what lies between the machines. ErrInvalid where all nodes are on one.
	RealLinks bool
	// Ephemeral labs end with the process that made them: when it dies without
	// Down, the next Sweep clears them.
	Ephemeral bool
	// Log gets what is done, at level debug; default none.
	Log *slog.Logger
	// Progress, when set, is told how far Up is; called from one goroutine at a time.
	Progress func(stage string, done, total int)

	// On is what the lab is made on; nil for this machine, as the directories say.
	Machine machine.Machine
	// Furnish, when set, gives nodes the programs that they will run; it is called before any does.
	PrepareNodes func(ctx context.Context, l *Lab) error
}

const maxName = 40 // bytes

// Names end up in paths, in names of namespaces and, those of nodes, in /etc/hosts.
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
			"use lower-case letters, digits and hyphens, beginning with a letter, at most %d", maxName)
	}
	if len(c.Topology.Nodes) == 0 {
		return fmt.Errorf("%w: the topology has no nodes", ErrInvalid)
	}
	if n := len(c.Topology.Nodes); n > maxNodes {
		return fmt.Errorf("%w: %d nodes, at most %d have addresses", ErrInvalid, n, maxNodes)
	}
	nodes := map[string]bool{}
	for _, n := range c.Topology.Nodes {
		if !validNode.MatchString(n.Name) {
			return fmt.Errorf("%w: %q cannot be the name of a node", ErrInvalid, n.Name)
		}
		if nodes[n.Name] {
			return fmt.Errorf("%w: two nodes are called %s", ErrInvalid, n.Name)
		}
		nodes[n.Name] = true
	}
	links := map[string]bool{}
	for _, l := range c.Topology.Links {
		switch {
		case links[l.ID]:
			return fmt.Errorf("%w: two links are called %s", ErrInvalid, l.ID)
		case l.A == l.B || !nodes[l.A] || !nodes[l.B]:
			return fmt.Errorf("%w: link %s goes from %q to %q, which are not two nodes", ErrInvalid, l.ID, l.A, l.B)
		}
		links[l.ID] = true
	}
	if _, err := os.Stat(c.Exe); err != nil {
		return fmt.Errorf("%w: the program of agents: %w", ErrInvalid, err)
	}
	return nil
}

// links are those of the topology at the scale asked for.
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

// SanitizeName makes a lab's name of any other, such as that of a topology.
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

// CheckWholeMachines says why nodes of a topology cannot be a machine each, with its own network, disk and kernel; nil
// when they can.
func CheckWholeMachines(t topology.Topology, nodes []string) error {
	if len(nodes) == 0 {
		return nil
	}
	names := strings.Join(nodes, ", ")
	switch {
	case t.Overlay.Routed():
		return wholeMachineError(names, "overlay: "+t.Overlay.Kind, "daemons would change the routes of the machine's own network")
	case t.Service.Enabled():
		return wholeMachineError(names, "service: "+t.Service.Kind, "it takes bridges and rules in a network of the node's own")
	}
	if len(t.TCP) > 0 {
		return wholeMachineError(names, "defaults: {tcp: ...}", "it has the machine's own settings")
	}
	for _, n := range t.Nodes {
		if !slices.Contains(nodes, n.Name) {
			continue
		}
		switch {
		case n.Flavor != nil:
			return wholeMachineError(n.Name, "a flavor", "it has what the machine has")
		case n.CPU > 0 || n.Memory > 0:
			return wholeMachineError(n.Name, "a limit of cpu or memory", "it has what the machine has")
		case t.Volume.Enabled() && n.Role != topology.Client:
			return wholeMachineError(n.Name, "volumes: "+t.Volume.Kind, "its directory is on the machine's own disk")
		}
	}
	return nil
}

func wholeMachineError(nodes, what, why string) error {
	err := fmt.Errorf("%w: %s cannot be a whole machine with %s: %s", ErrInvalid, nodes, what, why)
	return advice.With(err, "leave that out, or whole: true of the machine")
}

// UnenforcedLimits tells what of its flavor a node is not held to by its machine, for each such node;
// none where every node that has a flavor is as it says.
func (l *Lab) UnenforcedLimits() []string {
	var out []string
	for _, lack := range l.part.Facts().Unheld {
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
