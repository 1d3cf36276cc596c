package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/atomicfile"
	"skerry/internal/base/flock"
	"skerry/internal/base/linger"
)

// Store is a state directory with one directory for each lab. Both are locked by flock on the directory itself. This needs
// no disk space, and the kernel releases the lock however the holder ends:
//
//	STATE/.skerry              we made STATE, and remove it when it is empty
//	STATE/labs/                locked while labs are taken in or looked for
//	STATE/labs/NAME/           locked by the lab's owner
//	           id -> NAME-hex  the lab's ID, the base of all other names
//	           journal         what is about to be made; see journal.go
//	           lab.json        what the lab is, once it is up
//	           links.json      the links as they are
//	           hosts           /etc/hosts of the nodes
//	           ns/             a mount; below it one more for each network namespace
//	           link.sock       the emulator's
//	           link.log
type Store struct{ dir string }

// LabDir holds one lab's files.
type LabDir struct {
	Store Store
	Name  string // the lab's
}

const (
	IDFile       = "id"
	JournalFile  = "journal"
	RecordFile   = "lab.json"
	NoteFile     = "links.json"
	HostsFile    = "hosts"
	ResolverFile = "resolv.conf"
	SocketFile   = "link.sock"
	EngineLog    = "link.log"
	TunnelLog    = "wireguard.log"
	// Mark is in directories that belong to skerry although the user chose their path.
	Mark = ".skerry"
)

// OpenStore returns the state directory at a path, which may be missing.
func OpenStore(dir string) (Store, error) {
	dir, err := filepath.Abs(dir)
	return Store{dir}, err
}

func (s Store) Dir() string { return s.dir }

func (s Store) labs() string { return filepath.Join(s.dir, "labs") }

// Lab returns the directory of a lab.
func (s Store) Lab(name string) LabDir { return LabDir{s, name} }

func (p LabDir) Dir() string { return filepath.Join(p.Store.labs(), p.Name) }

func (p LabDir) Path(name string) string { return filepath.Join(p.Dir(), name) }

// Namespaces is the mount point of the lab's network namespaces.
func (p LabDir) Namespaces() string { return p.Path("ns") }

func (p LabDir) Namespace(node string) string { return filepath.Join(p.Namespaces(), node) }

// Container is the path of a container's network namespace. Node names contain no +.
func (p LabDir) Container(node string) string { return p.Namespace(node + "+container") }

// ListLabs returns the labs' directories, sorted by name.
func (s Store) ListLabs() ([]string, error) {
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

// DefaultStateDir is $SKERRY_STATE, else /run/skerry for root and $XDG_RUNTIME_DIR/skerry for others.
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

// DefaultDataDir is $SKERRY_DATA, else /var/tmp/skerry for root and $XDG_CACHE_HOME/skerry/nodes for others.
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

func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("read state of lab: %w", err)
	}
	return nil
}

// WriteJSON replaces a file of a lab atomically. It does not sync: a machine crash that loses the file also ends the lab.
func WriteJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write state of lab: %w", err)
	}
	err = atomicfile.Replace(path, 0o600, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("write state of lab: %w", err)
	}
	return nil
}

// MakeAttempts bounds the attempts to make a directory that another command may be removing.
const MakeAttempts = 100

// Lock waits for exclusive use of the store.
func (s Store) Lock(ctx context.Context) (*flock.Lock, error) {
	lock, err := lockOwned(ctx, s.labs())
	if err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	return lock, nil
}

// lockOwned makes a directory inside a directory that MakeOwnedDir makes, and waits for its lock.
func lockOwned(ctx context.Context, dir string) (lock *flock.Lock, err error) {
	for range MakeAttempts {
		if err = MakeOwnedDir(filepath.Dir(dir)); err == nil {
			err = os.Mkdir(dir, 0o700)
		}
		if err == nil || errors.Is(err, fs.ErrExist) {
			lock, err = LockDir(ctx, dir, true)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return lock, err
}

// releaseOwned unlocks a directory locked by lockOwned and removes it if it is empty.
func releaseOwned(lock *flock.Lock, dir string) {
	if os.Remove(dir) == nil {
		RemoveOwnedDir(filepath.Dir(dir))
	}
	lock.Close()
}

// LockExisting is Lock, but returns nil for a missing store.
func (s Store) LockExisting(ctx context.Context) (*flock.Lock, error) {
	dir, err := LockDir(ctx, s.labs(), true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}

// Release unlocks the store and removes it if it is empty.
func (s Store) Release(lock *flock.Lock) { releaseOwned(lock, s.labs()) }

const lockPoll = 10 * time.Millisecond

// LockDir locks a directory. Without wait, it returns flock.ErrHeld if the lock is taken.
func LockDir(ctx context.Context, path string, wait bool) (*flock.Lock, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var lock *flock.Lock
	for {
		if lock, err = flock.Acquire(dir); err == nil {
			break
		}
		if !errors.Is(err, flock.ErrHeld) {
			dir.Close()
			return nil, err
		}
		if !wait {
			dir.Close()
			return nil, fmt.Errorf("%s: %w", path, flock.ErrHeld)
		}
		if err := linger.For(ctx, lockPoll); err != nil {
			dir.Close()
			return nil, fmt.Errorf("wait for %s: %w", path, err)
		}
	}
	// While this process waited, the directory may have been replaced.
	var have, there unix.Stat_t
	err = unix.Fstat(int(dir.Fd()), &have)
	if err == nil {
		err = unix.Stat(path, &there)
	}
	if err == nil && have.Ino != there.Ino {
		err = fs.ErrNotExist
	}
	if err != nil {
		lock.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return lock, nil
}
