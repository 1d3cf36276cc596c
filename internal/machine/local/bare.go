package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// noEngine is the name of the link engine of a bare machine in records: there are no links. whyNoEngine is the reason.
const (
	noEngine    = "none"
	whyNoEngine = "the cluster and its network are not emulated"
)

// errBare means that a bare machine has no links or containers.
var errBare = fmt.Errorf("%w without a lab", errors.ErrUnsupported)

// BareMachine is this machine without any emulation: nodes are processes in its own network, without control groups,
// links or limits. Trials of a cluster that Skerry did not start run their clients on it. It needs no rights. Nodes have
// directories below Dir. The skerry program is Exe.
type BareMachine struct {
	Dir string
	Exe string
}

var _ machine.Machine = BareMachine{}

func (m BareMachine) Prepare(_ context.Context, a machine.PartSpec) (machine.Part, error) {
	dir := filepath.Join(m.Dir, a.Lab)
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of nodes: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("%w: %s", machine.ErrExists, a.Lab)
		}
		return nil, fmt.Errorf("make the directory of nodes: %w", err)
	}
	return &barePart{machine: m, dir: dir, hosts: map[string]host.Host{}}, nil
}

// Open implements machine.Machine: nodes end with their command.
func (BareMachine) Open(_ context.Context, lab string) (machine.Part, error) {
	return nil, fmt.Errorf("%w: %s", machine.ErrNotFound, lab)
}

func (BareMachine) List(context.Context) ([]machine.PartStatus, error) { return nil, nil }

func (BareMachine) Sweep(context.Context) ([]string, error) { return nil, nil }

func (BareMachine) Remove(_ context.Context, lab string) error {
	return fmt.Errorf("%w: %s", machine.ErrNotFound, lab)
}

// barePart is the nodes of one trial.
type barePart struct {
	machine BareMachine
	dir     string
	nodes   []machine.NodeFacts
	hosts   map[string]host.Host
}

func (p *barePart) MakeNodes(_ context.Context, nodes []machine.NodeSpec) error {
	for _, n := range nodes {
		if n.CPU > 0 || n.Memory > 0 || n.Volume.Enabled() {
			return fmt.Errorf("limit %s: %w", n.Name, errBare)
		}
		dir := filepath.Join(p.dir, n.Name)
		h, err := host.NewLoopback(n.Name, n.Site, "127.0.0.1", dir)
		if err != nil {
			return err
		}
		p.hosts[n.Name] = h
		p.nodes = append(p.nodes, machine.NodeFacts{Name: n.Name, Addr: h.Addr(), Exe: p.machine.Exe, Dir: dir, Netns: h.Netns()})
	}
	return nil
}

func (p *barePart) Host(node string) (host.Host, error) {
	if h := p.hosts[node]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("%w: %s", machine.ErrNoNode, node)
}

func (p *barePart) Facts() machine.Facts {
	return machine.Facts{ID: filepath.Base(p.dir), Engine: noEngine, Why: whyNoEngine, Owned: true, Nodes: p.nodes}
}

func (p *barePart) Files() files.System                                        { return files.Local{} }
func (p *barePart) Members() []machine.Member                                  { return []machine.Member{{Part: p}} }
func (p *barePart) Ended() <-chan struct{}                                     { return nil }
func (p *barePart) Lock(context.Context) error                                 { return nil }
func (p *barePart) Unlock() error                                              { return nil }
func (p *barePart) Close() error                                               { return nil }
func (p *barePart) MTU(context.Context) (int, error)                           { return 0, nil }
func (p *barePart) LinkStats(context.Context, ...string) ([]link.Stats, error) { return nil, nil }

// Down implements machine.Part. The processes of the nodes have ended: their sessions and the cluster ended them.
func (p *barePart) Down(context.Context) error {
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove the directory of nodes: %w", err)
	}
	return nil
}

// Commit, SetNote and Note implement machine.Part: no other process opens the part.
func (p *barePart) Commit(context.Context, json.RawMessage) error  { return nil }
func (p *barePart) SetNote(context.Context, json.RawMessage) error { return nil }
func (p *barePart) Note(context.Context) (json.RawMessage, error)  { return nil, nil }

// Lateness implements machine.Links: there is no emulator.
func (p *barePart) Lateness(context.Context, bool) (link.Lateness, error) {
	return link.Lateness{}, nil
}

// SetNames implements machine.Nodes: nodes use the names of the machine.
func (p *barePart) SetNames(context.Context, []machine.NameRecord) error { return nil }

// MakeLinks and the methods below accept empty requests, which a topology without links makes.
func (p *barePart) MakeLinks(_ context.Context, l []link.Spec) error    { return refuseAny(len(l)) }
func (p *barePart) ShapeLinks(_ context.Context, c []link.Change) error { return refuseAny(len(c)) }
func (p *barePart) AddRoutes(_ context.Context, r []machine.Route) error {
	return refuseAny(len(r))
}
func (p *barePart) MeasureRTT(_ context.Context, e machine.RTTSpec) ([]probe.RTTResult, error) {
	return nil, refuseAny(len(e.Paths))
}

func refuseAny(n int) error {
	if n > 0 {
		return errBare
	}
	return nil
}

func (p *barePart) AdoptLinks(context.Context, []link.Spec) error          { return errBare }
func (p *barePart) MakeTunnels(context.Context, []machine.TunnelEnd) error { return errBare }
func (p *barePart) SetAddresses(context.Context, []machine.Device) error   { return errBare }
func (p *barePart) SetCarrier(context.Context, machine.Cable, bool) error  { return errBare }
func (p *barePart) MakeTUN(context.Context, machine.TUN) error             { return errBare }
func (p *barePart) SetResolver(context.Context, netip.Addr) error          { return errBare }
func (p *barePart) MakeBridges(context.Context, []machine.Bridge) error    { return errBare }
func (p *barePart) SetRules(context.Context, []machine.RuleSet) error      { return errBare }
func (p *barePart) ConnectPeers(context.Context, machine.PeerSet) error    { return errBare }
func (p *barePart) ContainerHost(machine.Container) (host.Host, error)     { return nil, errBare }
func (p *barePart) IsListening(context.Context, string, int) (bool, error) { return false, errBare }
func (p *barePart) OpenEndpoint(context.Context, machine.EndpointSpec) (machine.Endpoint, error) {
	return machine.Endpoint{}, errBare
}
func (p *barePart) LookupRoutes(context.Context, string, []netip.Addr) ([]string, error) {
	return nil, errBare
}
func (p *barePart) MeasureTrain(context.Context, machine.TrainSpec) (probe.TrainResult, error) {
	return probe.TrainResult{}, errBare
}
