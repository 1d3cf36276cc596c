// Package journal is the state directory of this machine: one locked directory for each lab, with an intent journal. The
// journal lists what a lab will make on the machine, one JSON object per line: first the plan, then each process. The plan
// is synced before anything is made. Namespaces, mounts, devices and control groups need no entries, because their names
// follow from the lab's ID and directory.
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

// Journal accepts further lines. The zero Journal is closed.
type Journal struct {
	mu   sync.Mutex
	file *os.File
}

// entry is one line; only one field is set.
type entry struct {
	Plan    *Plan    `json:"plan,omitempty"`
	Process *Process `json:"process,omitempty"`
}

// Plan is what a lab will make in addition to what its ID implies.
type Plan struct {
	ID    string         `json:"id"`
	Boot  string         `json:"boot"` // no process or mount outlives it
	Owner procfs.Process `json:"owner"`
	// Data is the directory of the nodes' directories.
	Data string `json:"data"`
	// MadeNames is set if /run/netns did not exist.
	MadeNames bool `json:"made_names,omitempty"`
	// Whole is set if the lab's node is the machine itself.
	Whole bool `json:"whole,omitempty"`
}

type Process struct {
	procfs.Process
	Name string `json:"name"`
}

// Names of processes that belong to no node.
const (
	// Emulator is the link engine's process. It receives SIGTERM before SIGKILL, because it closes devices much faster than
	// the kernel does after SIGKILL.
	Emulator = "@emulator"
	// Tunneller encrypts packets.
	Tunneller = "@wireguard"
	// Holder keeps a rootless lab's user namespace alive.
	Holder = "@holder"
)

// Create writes the plan and syncs it.
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

// Open opens the journal of a running lab to append processes.
func Open(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return &Journal{file: file}, nil
}

// AppendProcess adds a process. It does not sync: a machine crash that loses the line also ends the process.
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
	// The leading newline separates this line from an earlier, truncated one.
	if _, err := j.file.Write(append(append([]byte{'\n'}, line...), '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

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

// Parse decodes a journal and skips damaged lines. The plan is nil if none is readable.
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
