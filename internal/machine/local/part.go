package local

import (
	"fmt"
	"sync"

	"skerry/internal/base/flock"
	"skerry/internal/link/tunnel"
	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/statedir"
)

// part is what this machine has of a lab.
type part struct {
	machine *Machine
	place   statedir.Place
	ask     machine.Ask // of Prepare; the zero value after Open
	journal *journal.Journal

	mu      sync.Mutex // of what follows; Make, Link, Address and Route have it all along
	record  record
	engine  emulator.Running
	nodes   map[string]*host.Node
	between *between        // nil before Meet, and in processes that did not make it
	tunnels *tunnel.Tunnels // nil without any, and in processes that did not lay them
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
