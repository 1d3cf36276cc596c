package local

import (
	"encoding/json"
	"fmt"
	"sync"

	"skerry/internal/base/flock"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/link/tunnel"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
)

// part implements machine.Part on this machine.
type part struct {
	machine *Machine
	place   journal.LabDir
	ask     machine.PartSpec // of Prepare; the zero value after Open
	journal *journal.Journal

	mu       sync.Mutex // of what follows; Make, Link, Address and Route have it all along
	record   record
	engine   emulator.RunningEngine
	nodes    map[string]*host.Node
	underlay *underlay       // nil before OpenEndpoint, and in processes that did not make it
	tunnels  *tunnel.Tunnels // nil without any, and in processes that did not lay them
	// owner is the lock of the lab's directory. The process that made an owned part holds it; so does every process that is
	// making a part. Otherwise it is nil.
	owner *flock.Lock
	// borrowed is the same lock while a process changes a part without an owner.
	borrowed *flock.Lock

	ending sync.Mutex // of Down, one at a time, and of what follows
	gone   bool       // it is down
}

var _ machine.Part = (*part)(nil)

func (p *part) Facts() machine.Facts {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.record.facts()
	f.Emulator = p.engine.PID
	for i := range f.Nodes {
		f.Nodes[i].Exe = p.machine.Exe
	}
	if p.tunnels != nil {
		f.Tunneller = p.tunnels.PID()
	}
	return f
}

func (p *part) Members() []machine.Member { return []machine.Member{{Part: p}} }

func (p *part) Ended() <-chan struct{} { return p.running().Ended }

func (p *part) running() emulator.RunningEngine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.engine
}

func (p *part) nodesMade() []node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.record.Nodes
}

func (p *part) nodeMade(name string) (node, error) {
	for _, n := range p.nodesMade() {
		if n.Name == name {
			return n, nil
		}
	}
	return node{}, fmt.Errorf("%w in lab %s: %s", machine.ErrNoNode, p.place.Name, name)
}

func (p *part) Files() files.System { return files.Local{} }

// record is the content of lab.json, written when the lab is up. A part without it is incomplete.
type record struct {
	Version  int                       `json:"version"`
	ID       string                    `json:"id"`
	Name     string                    `json:"name"`
	Boot     string                    `json:"boot"`
	Owned    bool                      `json:"ephemeral"`
	Owner    procfs.Process            `json:"owner"` // of an owned part
	Holder   *journal.Process          `json:"holder,omitempty"`
	Engine   string                    `json:"engine"`
	Why      string                    `json:"engine_why"`
	Emulator *procfs.Process           `json:"emulator,omitempty"`
	Nodes    []node                    `json:"nodes"`
	Data     string                    `json:"data"`
	Groups   bool                      `json:"control_groups"`
	Warnings []string                  `json:"warnings,omitempty"`
	Unheld   []machine.UnenforcedLimit `json:"unheld,omitempty"`
	Settings map[string]string         `json:"settings"`
	// Lab is the description passed to Commit.
	Lab json.RawMessage `json:"lab,omitempty"`
}

// recordVersion changes when programs of other versions would misread the record. Sweep and Remove accept all versions: the
// fields that they need have not changed.
const recordVersion = 2

// node is an existing node.
type node struct {
	machine.NodeSpec
	Dir string `json:"dir"`
	// Netns is a path; Shown is the name in `ip netns`, "" for none.
	Netns string `json:"netns"`
	Shown string `json:"shown,omitempty"`
}

// whole reports whether the node is the machine itself.
func (n node) whole() bool { return n.Netns == netns.OwnPath }

func readRecord(p journal.LabDir) (record, error) {
	var r record
	err := journal.ReadJSON(p.Path(journal.RecordFile), &r)
	return r, err
}

func (r record) names() []string {
	names := make([]string, len(r.Nodes))
	for i, n := range r.Nodes {
		names[i] = n.Name
	}
	return names
}

func (r record) facts() machine.Facts {
	f := machine.Facts{
		ID: r.ID, Engine: r.Engine, Why: r.Why, Owned: r.Owned, Warnings: r.Warnings, Unenforced: r.Unheld, Settings: r.Settings, Lab: r.Lab,
	}
	if r.Holder != nil {
		f.Holder = &r.Holder.Process
	}
	if r.Emulator != nil {
		f.Emulator = r.Emulator.PID
	}
	for _, n := range r.Nodes {
		known := machine.NodeFacts{Name: n.Name, Addr: n.Addr, Dir: n.Dir, Netns: n.Netns}
		if n.Shown != "" {
			known.Netns = n.Shown
		}
		f.Nodes = append(f.Nodes, known)
	}
	return f
}
