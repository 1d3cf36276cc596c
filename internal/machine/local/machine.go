// Package local implements machine.Machine on this machine: a network namespace, a control group and a directory for each
// node, and links between them made by a link engine.
//
// Everything that a part makes is written to a journal first, so that Sweep can remove exactly what a killed process, a
// crash or a full disk left. The machine's own network namespace gets no devices, addresses, routes or rules, except for a
// node that is the machine itself (whole.go). The kernel removes those with the lab's processes.
package local

import (
	"log/slog"

	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/journal"
)

// Config configures a Machine.
type Config struct {
	// State is the state directory; default journal.DefaultStateDir.
	State string
	// Data is the directory for the nodes' directories, on a disk with space for databases; default journal.DefaultDataDir.
	Data string
	// Exe is the skerry program, from which agents are started.
	Exe string
	// Engines are the available engines in the order of preference; default emulator.Kinds.
	Engines []emulator.Kind
	// Log receives debug messages; default none.
	Log *slog.Logger
	// Progress, if set, is called while nodes and links are made, by one goroutine at a time.
	Progress func(stage string, done, total int)
}

// Machine implements machine.Machine on this machine.
type Machine struct {
	Config
	store journal.Store
}

var _ machine.Machine = (*Machine)(nil)

func New(c Config) (*Machine, error) {
	if c.State == "" {
		c.State = journal.DefaultStateDir()
	}
	if c.Data == "" {
		c.Data = journal.DefaultDataDir()
	}
	if c.Engines == nil {
		c.Engines = emulator.Kinds()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = func(string, int, int) {}
	}
	store, err := journal.OpenStore(c.State)
	if err != nil {
		return nil, err
	}
	return &Machine{c, store}, nil
}
