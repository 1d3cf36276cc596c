// Package journal is the state directory of this machine: one locked directory for each lab, with an
// intent journal. The journal lists what a lab is about to make on the machine, one JSON object a line:
// first the plan, then each process. The plan is on the disk before anything is made. Namespaces, mounts,
// devices and control groups need no entries, because their names follow from the lab's ID and directory.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"skerry/internal/base/atomicfile"
	"skerry/internal/kernel/procfs"
)

// Journal is open for further lines. The zero Journal is closed.
type Journal struct {
	mu   sync.Mutex
	file *os.File
}

// entry is one line; what is not its kind is left out.
type entry struct {
	Plan    *Plan    `json:"plan,omitempty"`
	Process *Process `json:"process,omitempty"`
}

// Plan is what a lab is going to make beyond what its ID implies.
type Plan struct {
	ID    string         `json:"id"`
	Boot  string         `json:"boot"` // no process or mount outlives it
	Owner procfs.Process `json:"owner"`
	// Data is the directory that holds those of the nodes.
	Data string `json:"data"`
	// MadeNames says that /run/netns was not there.
	MadeNames bool `json:"made_names,omitempty"`
	// Whole says that the lab's node is the machine itself, which it is of one lab at a time.
	Whole bool `json:"whole,omitempty"`
}

// Process is a process that the lab started.
type Process struct {
	procfs.Process
	Name string `json:"name"`
}

// Names of processes that are no node's.
const (
	// Emulator is the process of the link engine. It is asked to end before it is killed: it
	// closes devices much faster than the kernel does for it.
	Emulator = "@emulator"
	// Tunneller is the process that moves packets through tunnels.
	Tunneller = "@wireguard"
	// Holder is the process that keeps a rootless lab's user namespace.
	Holder = "@holder"
)

// Create writes the plan, and returns when it is on the disk.
func Create(path string, plan Plan) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	j := &Journal{file: file}
	if err := errors.Join(j.append(entry{Plan: &plan}), file.Sync(), atomicfile.SyncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

// Open opens the journal of a lab that is up, for further processes.
func Open(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return &Journal{file: file}, nil
}

// AppendProcess notes a process. It is not forced to the disk: the process does not survive
// what loses it.
func (j *Journal) AppendProcess(p procfs.Process, name string) error {
	return j.append(entry{Process: &Process{p, name}})
}

func (j *Journal) append(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return fmt.Errorf("write journal: %w", fs.ErrClosed)
	}
	// A line of its own, whatever became of the one before.
	if _, err := j.file.Write(append(append([]byte{'\n'}, line...), '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// Close lets go of the journal. It may be called again.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// Parse returns what can be read of a journal: lines that a crash cut off, or that are
// damaged, say nothing. The plan is nil when none can be read.
func Parse(data []byte) (plan *Plan, processes []Process) {
	for line := range bytes.Lines(data) {
		var e entry
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if e.Plan != nil && plan == nil {
			plan = e.Plan
		}
		if e.Process != nil {
			processes = append(processes, *e.Process)
		}
	}
	return plan, processes
}
