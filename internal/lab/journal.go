package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"skerry/internal/procfs"
	"skerry/internal/whole"
)

// journal is the file that says what a lab is about to make: one line of JSON each, the
// first the plan, then a line for every process. The plan is on the disk before anything
// is made. Namespaces, mounts, devices and control groups need no lines of their own:
// their names follow from the lab's ID and directory.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

// entry is one line; what is not its kind is left out.
type entry struct {
	Plan    *plan         `json:"plan,omitempty"`
	Process *namedProcess `json:"process,omitempty"`
}

// plan is what a lab is going to make beyond what its ID implies.
type plan struct {
	ID    string         `json:"id"`
	Boot  string         `json:"boot"` // no process or mount outlives it
	Owner procfs.Process `json:"owner"`
	// Data is the directory that holds those of the nodes.
	Data string `json:"data"`
	// MadeNames says that /run/netns was not there.
	MadeNames bool `json:"made_names,omitempty"`
}

// namedProcess is a process that the lab started.
type namedProcess struct {
	procfs.Process
	Name string `json:"name"`
}

// emulator names the process of the link engine. It is asked to end before it is
// killed: it closes devices much faster than the kernel does for it.
const emulator = "@emulator"

// createJournal writes the plan, and returns when it is on the disk.
func createJournal(p place, pl plan) (*journal, error) {
	file, err := os.OpenFile(p.file(journalFile), os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write journal: %w", err)
	}
	j := &journal{file: file}
	if err := errors.Join(j.write(entry{Plan: &pl}), file.Sync(), whole.SyncDir(p.dir())); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

// openJournal opens the journal of a lab that is up, for further processes.
func openJournal(p place) (*journal, error) {
	file, err := os.OpenFile(p.file(journalFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return &journal{file: file}, nil
}

// began notes a process. It is not forced to the disk: the process does not survive
// what loses it.
func (j *journal) began(p procfs.Process, name string) error {
	return j.write(entry{Process: &namedProcess{p, name}})
}

func (j *journal) write(e entry) error {
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

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// readJournal returns what can be read of a journal: lines that a crash cut off, or
// that are damaged, say nothing.
func readJournal(data []byte) (pl *plan, processes []namedProcess) {
	for line := range bytes.Lines(data) {
		var e entry
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if e.Plan != nil && pl == nil {
			pl = e.Plan
		}
		if e.Process != nil {
			processes = append(processes, *e.Process)
		}
	}
	return pl, processes
}
