package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/advice"
)

// A state directory has one directory for each lab. Both are locked by flock on the
// directory itself, which needs no room on the disk and which the kernel undoes however
// the holder ends:
//
//	STATE/.skerry              we made STATE, and remove it when it is empty
//	STATE/labs/                locked while labs are taken in or looked for
//	STATE/labs/NAME/           locked by the lab's owner
//	           id -> NAME-hex  the lab's ID, of which all other names are made
//	           journal         what is about to be made; see journal.go
//	           lab.json        what the lab is, once it is up
//	           links.json      the links as they are
//	           hosts           /etc/hosts of the nodes
//	           ns/             a mount; below it one more for each network namespace
//	           link.sock       the emulator's
//	           link.log
type store struct{ dir string }

// place is where one lab's files are.
type place struct {
	store store
	name  string
}

func (s store) labs() string            { return filepath.Join(s.dir, "labs") }
func (s store) lab(name string) place   { return place{s, name} }
func (p place) dir() string             { return filepath.Join(p.store.labs(), p.name) }
func (p place) file(name string) string { return filepath.Join(p.dir(), name) }
func (p place) namespaces() string      { return p.file("ns") }
func (p place) namespace(node string) string {
	return filepath.Join(p.namespaces(), node)
}

// Names of a lab's files.
const (
	idFile      = "id"
	journalFile = "journal"
	stateFile   = "lab.json"
	linksFile   = "links.json"
	hostsFile   = "hosts"
	socketFile  = "link.sock"
	logFile     = "link.log"
	// madeFile marks directories that belong to skerry though a user chose their path.
	madeFile = ".skerry"
)

// DefaultStateDir is $SKERRY_STATE, else /run/skerry for root and
// $XDG_RUNTIME_DIR/skerry for others.
func DefaultStateDir() string {
	if dir := os.Getenv("SKERRY_STATE"); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/run/skerry"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "skerry")
	}
	return filepath.Join(cacheDir(), "state")
}

// DefaultDataDir is $SKERRY_DATA, else /var/tmp/skerry for root and
// $XDG_CACHE_HOME/skerry/nodes for others.
func DefaultDataDir() string {
	if dir := os.Getenv("SKERRY_DATA"); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/var/tmp/skerry"
	}
	return filepath.Join(cacheDir(), "nodes")
}

func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return fmt.Sprintf("/var/tmp/skerry-%d", os.Getuid())
	}
	return filepath.Join(dir, "skerry")
}

func openStore(dir string) (store, error) {
	if dir == "" {
		dir = DefaultStateDir()
	}
	dir, err := filepath.Abs(dir)
	return store{dir}, err
}

// own makes a directory that is skerry's, and marks it so that disown removes it. It is
// marked before it gets its name: a command that is killed between leaves what sweepNew
// knows.
func own(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	for {
		if _, err := os.Lstat(dir); err == nil {
			return trusted(dir)
		}
		err := os.Mkdir(dir+newSuffix, 0o755)
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Symlink("made by skerry", filepath.Join(dir+newSuffix, madeFile))
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = os.Rename(dir+newSuffix, dir)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist), errors.Is(err, unix.ENOTEMPTY):
			// Another command was faster.
		default:
			sweepNew(dir)
			return err
		}
	}
}

// newSuffix is that of a directory which own is making.
const newSuffix = ".new"

// sweepNew removes what own was making when it was killed.
func sweepNew(dir string) {
	_ = os.Remove(filepath.Join(dir+newSuffix, madeFile)) // neither may be there
	_ = os.Remove(dir + newSuffix)
}

// trusted refuses a directory that somebody else put where anyone may.
func trusted(dir string) error {
	var above, here unix.Stat_t
	if err := unix.Stat(filepath.Dir(dir), &above); err != nil {
		return &os.PathError{Op: "stat", Path: filepath.Dir(dir), Err: err}
	}
	if err := unix.Lstat(dir, &here); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if owner := int(here.Uid); above.Mode&unix.S_IWOTH != 0 && owner != os.Geteuid() && owner != 0 {
		return advice.With(fmt.Errorf("%s belongs to user %d", dir, owner), "give other directories by SKERRY_STATE and SKERRY_DATA")
	}
	return nil
}

// disown removes a directory that own made and in which nothing is left.
func disown(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != madeFile {
		return
	}
	if os.Remove(filepath.Join(dir, madeFile)) == nil {
		_ = os.Remove(dir) // somebody may have put something there meanwhile
	}
}

// tries is how often something is made that the last lab of another command may just be
// taking away.
const tries = 100

// lock waits for the exclusive use of the store.
func (s store) lock(ctx context.Context) (*os.File, error) {
	var err error
	for range tries {
		if err = own(s.dir); err != nil {
			return nil, fmt.Errorf("make state directory: %w", err)
		}
		if err = os.Mkdir(s.labs(), 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			var lock *os.File
			if lock, err = lockDir(ctx, s.labs(), true); err == nil {
				return lock, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, fmt.Errorf("make state directory: %w", err)
}

// lockExisting is lock for a store that may not be there: nil then.
func (s store) lockExisting(ctx context.Context) (*os.File, error) {
	dir, err := lockDir(ctx, s.labs(), true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}

// release gives the lock of the store back and removes what is empty.
func (s store) release(lock *os.File) {
	if os.Remove(s.labs()) == nil {
		disown(s.dir)
	}
	lock.Close()
}

// names are those of the labs in the store, sorted.
func (s store) names() ([]string, error) {
	entries, err := os.ReadDir(s.labs())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// errLocked is returned for a lock that somebody holds.
var errLocked = errors.New("locked")

// moment is how long a lock may be held by somebody who is not the lab's owner: a command
// that changes links, or a process that the owner was starting when it was killed and
// that still has all its files.
const moment = 2 * time.Second

// seize locks the lab's directory, for ending the lab; errLocked when its owner lives.
func (p place) seize(ctx context.Context) (*os.File, error) {
	lock, err := lockDir(ctx, p.dir(), false)
	if !errors.Is(err, errLocked) {
		return lock, err
	}
	if r := inspect(p); r.plan == nil || r.plan.Owner.Alive() {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	lock, err = lockDir(within, p.dir(), true)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("%s: %w", p.dir(), errLocked)
	}
	return lock, err
}

// patience is how often a lock is tried that somebody holds.
const patience = 10 * time.Millisecond

// lockDir locks a directory for as long as the file returned is open. Without wait, a
// lock that is taken gives errLocked.
func lockDir(ctx context.Context, path string, wait bool) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			dir.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		if !wait {
			dir.Close()
			return nil, fmt.Errorf("%s: %w", path, errLocked)
		}
		select {
		case <-ctx.Done():
			dir.Close()
			return nil, fmt.Errorf("wait for %s: %w", path, ctx.Err())
		case <-time.After(patience):
		}
	}
	// It may have been removed, and made anew, while the lock was waited for.
	var have, there unix.Stat_t
	err = unix.Fstat(int(dir.Fd()), &have)
	if err == nil {
		err = unix.Stat(path, &there)
	}
	if err == nil && have.Ino != there.Ino {
		err = fs.ErrNotExist
	}
	if err != nil {
		dir.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return dir, nil
}
