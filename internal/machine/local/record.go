package local

import (
	"encoding/json"

	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/statedir"
)

// record is lab.json: what a part is, written when the lab is up. A part without it is half
// made or half gone.
type record struct {
	Version  int               `json:"version"`
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Boot     string            `json:"boot"`
	Owned    bool              `json:"ephemeral"`
	Owner    procfs.Process    `json:"owner"` // of an owned part
	Holder   *journal.Process  `json:"holder,omitempty"`
	Engine   string            `json:"engine"`
	Why      string            `json:"engine_why"`
	Emulator *procfs.Process   `json:"emulator,omitempty"`
	Nodes    []node            `json:"nodes"`
	Data     string            `json:"data"`
	Groups   bool              `json:"control_groups"`
	Warnings []string          `json:"warnings,omitempty"`
	Unheld   []machine.Lack    `json:"unheld,omitempty"`
	Settings map[string]string `json:"settings"`
	// Lab is what the lab says of itself.
	Lab json.RawMessage `json:"lab,omitempty"`
}

// recordVersion counts changes that a program of another version must not take for its own.
// Sweep and Remove understand all of them: what clearing a part needs has stayed.
const recordVersion = 2

// node is a node that was made.
type node struct {
	machine.Node
	Dir string `json:"dir"`
	// Netns is a path; Shown is the name that `ip netns` knows it by, "" for none.
	Netns string `json:"netns"`
	Shown string `json:"shown,omitempty"`
}

// whole tells whether the node is the machine itself.
func (n node) whole() bool { return n.Netns == netns.OwnPath }

func readRecord(p statedir.Place) (record, error) {
	var r record
	err := statedir.ReadJSON(p.File(statedir.Record), &r)
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
		ID: r.ID, Engine: r.Engine, Why: r.Why, Owned: r.Owned, Warnings: r.Warnings, Unheld: r.Unheld, Settings: r.Settings, Lab: r.Lab,
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
