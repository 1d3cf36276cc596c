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

// part is what this machine has of a lab.
type part struct {
	machine *Machine
	place   journal.LabDir
	ask     machine.PartSpec // of Prepare; the zero value after Open
	journal *journal.Journal

	mu       sync.Mutex // of what follows; Make, Link, Address and Route have it all along
	record   record
	engine   emulator.Running
	nodes    map[string]*host.Node
	underlay *underlay       // nil before OpenEndpoint, and in processes that did not make it
	tunnels  *tunnel.Tunnels // nil without any, and in processes that did not lay them
	// owner is the lock of the lab's directory, held by the process that made an owned part,
	// and by every process while it brings one up; else nil.
	owner *flock.Lock
	// borrowed is that lock while others change the part.
	borrowed *flock.Lock

	ending sync.Mutex // of Down, one at a time, and of what follows
	gone   bool       // it is down
}

var _ machine.Part = (*part)(nil)

// Facts implements machine.Part.
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

// Members implements machine.Part.
func (p *part) Members() []machine.Member { return []machine.Member{{Part: p}} }

// Ended implements machine.Part.
func (p *part) Ended() <-chan struct{} { return p.running().Ended }

// running is the link engine at work.
func (p *part) running() emulator.Running {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.engine
}

// nodesMade are the part's nodes.
func (p *part) nodesMade() []node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.record.Nodes
}

// nodeMade is the node of a name; ErrNoNode when there is none.
func (p *part) nodeMade(name string) (node, error) {
	for _, n := range p.nodesMade() {
		if n.Name == name {
			return n, nil
		}
	}
	return node{}, fmt.Errorf("%w in lab %s: %s", machine.ErrNoNode, p.place.Name, name)
}

// Files are this machine's.
func (p *part) Files() files.System { return files.Local{} }

// record is lab.json: what a part is, written when the lab is up. A part without it is half
// made or half gone.
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
	// Lab is what the lab says of itself.
	Lab json.RawMessage `json:"lab,omitempty"`
}

// recordVersion counts changes that a program of another version must not take for its own.
// Sweep and Remove understand all of them: what clearing a part needs has stayed.
const recordVersion = 2

// node is a node that was made.
type node struct {
	machine.NodeSpec
	Dir string `json:"dir"`
	// Netns is a path; Shown is the name that `ip netns` knows it by, "" for none.
	Netns string `json:"netns"`
	Shown string `json:"shown,omitempty"`
}

// whole tells whether the node is the machine itself.
func (n node) whole() bool { return n.Netns == netns.OwnPath }

func readRecord(p journal.LabDir) (record, error) {
	var r record
	err := journal.ReadJSON(p.Path(journal.RecordFile), &r)
	return r, err
}

// names are those of the nodes.
func (r record) names() []string {
	names := make([]string, len(r.Nodes))
	for i, n := range r.Nodes {
		names[i] = n.Name
	}
	return names
}

// facts are what is told of a part.
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
