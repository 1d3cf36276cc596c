package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/process"
)

// Undo is a command of a user that must run after another one, whatever happens to this process: RecordUndo, then the
// command to undo, then the undo, then Settle. SweepUndos runs what a killed process left.
type Undo struct {
	// Of is the command that is undone.
	Of string `json:"of"`
	// Text is the line for /bin/sh, "" if there is nothing to undo but running commands to kill.
	Text string `json:"text"`
	// Dir is the working directory.
	Dir     string        `json:"dir"`
	Timeout time.Duration `json:"timeout_ns"`
}

// UndoVariable is the environment variable that names the Undo of a command that runs.
const UndoVariable = "SKERRY_UNDO"

const undoFile = "undo.json"

// UndosDir is the directory of all undos of this machine, below the directory of nodes ("" for the default), which
// outlives a restart of the machine.
func UndosDir(dataDir string) string {
	return filepath.Join(cmp.Or(dataDir, DefaultDataDir()), "undo")
}

// PendingUndo is an Undo on the disk, in a directory that this process has locked.
type PendingUndo struct {
	Undo
	dir *LockedDir
}

// RecordUndo returns when the undo is on the disk, below a directory.
func RecordUndo(ctx context.Context, dir string, u Undo) (*PendingUndo, error) {
	c, err := NewLockedDir(ctx, dir, rand.Text())
	if err == nil {
		if err = WriteRecord(c.Path, undoFile, u); err != nil {
			err = errors.Join(err, c.Remove(ctx))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("record undo of %q: %w", u.Of, err)
	}
	return &PendingUndo{u, c}, nil
}

func (p *PendingUndo) id() string { return filepath.Base(p.dir.Path) }

// Env is the environment of the commands that the undo belongs to. It identifies them: they are killed before the undo
// runs.
func (p *PendingUndo) Env() []string { return []string{UndoVariable + "=" + p.id()} }

// Run runs the command, after killing what the commands before it left running.
func (p *PendingUndo) Run(ctx context.Context) (process.ShellResult, error) {
	if err := p.killCommands(); err != nil {
		return process.ShellResult{}, err
	}
	if p.Text == "" {
		return process.ShellResult{}, nil
	}
	return process.ExecuteShell(ctx, process.ShellCommand{Name: "undo", Text: p.Text, Dir: p.Dir, Env: p.Env(), Timeout: p.Timeout})
}

// killCommands kills the processes of the commands, which outlive a killed skerry.
func (p *PendingUndo) killCommands() error {
	left, err := procfs.FindProcesses(func(pid int) bool { return procfs.ReadEnv(pid, UndoVariable) == p.id() })
	if err != nil {
		return fmt.Errorf("find processes of command %q: %w", p.Of, err)
	}
	var errs []error
	for _, found := range left {
		errs = append(errs, found.Kill())
	}
	return errors.Join(errs...)
}

// Settle removes the undo, which has run.
func (p *PendingUndo) Settle(ctx context.Context) error { return p.dir.Remove(ctx) }

// Leave leaves an undo that failed to SweepUndos.
func (p *PendingUndo) Leave() error { return p.dir.Leave() }

// SweepUndos runs the undos below dir whose process has died, and returns the commands that they undid. An undo that
// fails stays.
func SweepUndos(ctx context.Context, dir string) (undone []string, err error) {
	return SweepLockedDirs(ctx, dir, func(c *LockedDir) (string, error) {
		p := &PendingUndo{dir: c}
		ok, err := c.ReadRecord(undoFile, &p.Undo)
		if err != nil || !ok { // without a record, no command has begun
			return "", err
		}
		if _, err := p.Run(ctx); err != nil {
			err = fmt.Errorf("command %q of a killed run: %w", p.Of, err)
			return "", advice.With(err, "if it cannot be undone any more, remove %s", c.Path)
		}
		return p.Of, nil
	})
}
