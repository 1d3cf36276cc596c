package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
	"skerry/internal/base/flock"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine/process"
)

// Undo is a command of a user that must run after another one, whatever happens to this process. It is in a file below
// the directory of nodes, which outlives a restart of the machine, and the file is locked by the process that will run
// it. RecordUndo, then the command to undo, then the undo, then Settle. SweepUndos runs what a killed process left.
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

// UndosDir is the directory of all undos of this machine, below the directory of nodes ("" for the default).
func UndosDir(dataDir string) string {
	return filepath.Join(cmp.Or(dataDir, DefaultDataDir()), "undo")
}

// PendingUndo is an Undo on the disk, owned by this process.
type PendingUndo struct {
	Undo
	path string
	lock *flock.Lock
}

const (
	undoSuffix    = ".json"
	newUndoSuffix = ".new" // not complete; nothing has run
)

// RecordUndo returns when the undo is on the disk.
func RecordUndo(dir string, u Undo) (*PendingUndo, error) {
	text, err := json.Marshal(u)
	if err != nil {
		return nil, fmt.Errorf("record undo of %q: %w", u.Of, err)
	}
	for range MakeAttempts {
		var p *PendingUndo
		p, err = writeUndo(dir, u, text)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, flock.ErrHeld) { // another process may just remove the directory
			break
		}
	}
	return nil, fmt.Errorf("record undo of %q: %w", u.Of, err)
}

func writeUndo(dir string, u Undo, text []byte) (*PendingUndo, error) {
	if err := MakeOwnedDir(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	path := filepath.Join(dir, rand.Text())
	f, err := os.OpenFile(path+newUndoSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	lock, err := flock.Acquire(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync())
	if err == nil {
		err = os.Rename(path+newUndoSuffix, path+undoSuffix)
	}
	if err == nil {
		err = errors.Join(atomicfile.SyncDir(dir), atomicfile.SyncDir(filepath.Dir(dir)))
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &PendingUndo{u, path + undoSuffix, lock}, nil
}

// Env is the environment of the commands that the undo belongs to. By it they are found and killed before the undo runs.
func (p *PendingUndo) Env() []string {
	return []string{UndoVariable + "=" + strings.TrimSuffix(filepath.Base(p.path), undoSuffix)}
}

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

// killCommands kills the processes of the commands. A killed process leaves its commands running.
func (p *PendingUndo) killCommands() error {
	pids, err := procfs.ListPIDs()
	if err != nil {
		return fmt.Errorf("find processes of command %q: %w", p.Of, err)
	}
	_, id, _ := strings.Cut(p.Env()[0], "=")
	var errs []error
	for _, pid := range pids {
		found, err := procfs.FindProcess(pid) // before the test: a later process with this ID is not killed
		if err == nil && procfs.ReadEnv(pid, UndoVariable) == id {
			errs = append(errs, found.Kill())
		}
	}
	return errors.Join(errs...)
}

// Settle removes the undo, which has run.
func (p *PendingUndo) Settle() error {
	err := os.Remove(p.path)
	if err != nil {
		err = fmt.Errorf("remove undo of %q: %w", p.Of, err)
	}
	dir := filepath.Dir(p.path)
	if os.Remove(dir) == nil {
		RemoveOwnedDir(filepath.Dir(dir))
	}
	return errors.Join(err, p.lock.Close())
}

// Leave leaves an undo that failed to SweepUndos.
func (p *PendingUndo) Leave() error { return p.lock.Close() }

// SweepUndos runs the undos below dir whose process has died, and returns the commands that they undid. An undo that fails
// stays; the error names its file.
func SweepUndos(ctx context.Context, dir string) (undone []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list undos: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if ctx.Err() != nil {
			break
		}
		name, err := sweepUndo(ctx, filepath.Join(dir, e.Name()))
		if name != "" {
			undone = append(undone, name)
		}
		errs = append(errs, err)
	}
	return undone, errors.Join(errs...)
}

func sweepUndo(ctx context.Context, path string) (of string, err error) {
	p, err := openUndo(path)
	if p == nil {
		return "", err
	}
	if strings.HasSuffix(path, newUndoSuffix) {
		return "", p.Settle()
	}
	if _, err := p.Run(ctx); err != nil {
		err = advice.With(fmt.Errorf("command %q of a killed run: %w", p.Of, err), "if it cannot be undone any more, remove %s", path)
		return "", errors.Join(err, p.Leave())
	}
	return p.Of, p.Settle()
}

// openUndo returns nil if the process of the undo lives, or the file is gone. It reads no file of another user: its
// command would run with the rights of this one.
func openUndo(path string) (*PendingUndo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open undo: %w", err)
	}
	lock, err := flock.Acquire(f)
	if errors.Is(err, flock.ErrHeld) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock undo: %w", err), f.Close())
	}
	p := &PendingUndo{path: path, lock: lock}
	there, err := os.Lstat(path)
	here, statErr := f.Stat()
	if err != nil || statErr != nil || !os.SameFile(there, here) { // another process has settled it
		return nil, lock.Close()
	}
	if st, ok := here.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return nil, errors.Join(advice.With(fmt.Errorf("undo %s belongs to another user", path), "remove it"), lock.Close())
	}
	if strings.HasSuffix(path, newUndoSuffix) {
		return p, nil
	}
	if err := json.NewDecoder(f).Decode(&p.Undo); err != nil {
		return nil, errors.Join(fmt.Errorf("read undo %s: %w", path, err), lock.Close())
	}
	return p, nil
}
