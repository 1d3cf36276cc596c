// Package local is what the machine that this process runs on does for labs: a network
// namespace, a control group and a directory for each node, and the links between them made
// by a link engine.
//
// Whatever a part of a lab makes is written to a journal before it is made, so that Sweep can
// clear what a killed process, a crash or a full disk left, and nothing else. The machine's
// own network namespace gets no device, address, route or rule, but for a node that is the machine
// itself (whole.go), whose end with the lab the kernel sees to.
package local

import (
	"log/slog"

	"skerry/internal/machine"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/journal"
)

// Config says how a machine does its work.
type Config struct {
	// State is the directory that keeps the journals of labs; default
	// journal.DefaultStateDir.
	State string
	// Data gets the directories of nodes, so it should be on a disk with room for databases;
	// default journal.DefaultDataDir.
	Data string
	// Exe is the skerry program that agents are started from.
	Exe string
	// Engines are those to choose from, in the order of preference; default emulator.Kinds.
	Engines []emulator.Kind
	// Log gets what is done, at level debug; default none.
	Log *slog.Logger
	// Progress, when set, is told how far Make, Address and Route are; called from one
	// goroutine at a time.
	Progress func(stage string, done, total int)
}

// Machine is this machine.
type Machine struct {
	Config
	store journal.Store
}

var _ machine.Machine = (*Machine)(nil)

// New returns this machine.
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
