package external

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
	"skerry/internal/base/flock"
	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/machine/journal"
)

// Scratch is the directory of a trial on this machine: its clients' files, and the name of its table until that is
// dropped. The process that made it holds a lock on it.
type Scratch struct {
	dir  string
	lock *flock.Lock
}

// intent is the table that a trial may have made.
type intent struct {
	Database   string            `json:"database"`
	Servers    []string          `json:"servers"`
	Properties map[string]string `json:"properties"` // of its clients, with the table
	Created    time.Time         `json:"created"`
}

const intentFile = "table.json"

// NewScratch makes the scratch directory of a name below dir.
func NewScratch(dir, name string) (*Scratch, error) {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of trial: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of trial: %w", err)
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock directory of trial: %w", err), os.Remove(path))
	}
	return &Scratch{path, lock}, nil
}

func lockDir(path string) (*flock.Lock, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	lock, err := flock.Acquire(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return lock, nil
}

// Dir is the scratch directory's directory, which Release removes, or "" for nil.
func (c *Scratch) Dir() string {
	if c == nil {
		return ""
	}
	return c.dir
}

// ScratchRoot is the directory of all scratch directories of this machine, below the directory of nodes.
func ScratchRoot(dataDir string) string {
	return filepath.Join(cmp.Or(dataDir, journal.DefaultDataDir()), "clusters")
}

// recordIntent writes the table's name to the disk, in a scratch directory. Only then clients may connect.
func recordIntent(dir string, i intent) error {
	err := atomicfile.Write(filepath.Join(dir, intentFile), func(w io.Writer) error { return json.NewEncoder(w).Encode(i) })
	if err == nil {
		err = atomicfile.SyncDir(filepath.Dir(dir)) // the directory itself is new
	}
	if err != nil {
		return fmt.Errorf("record the name of the table: %w", err)
	}
	return nil
}

// settleIntent removes the table's name once the table is dropped.
func settleIntent(dir string) error {
	if err := os.Remove(filepath.Join(dir, intentFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the name of the table: %w", err)
	}
	return nil
}

// Release gives the directory up. One with a table that was not dropped is left to Sweep.
func (c *Scratch) Release() error {
	if c == nil {
		return nil
	}
	_, err := os.Stat(filepath.Join(c.dir, intentFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = os.RemoveAll(c.dir)
	}
	return errors.Join(err, c.lock.Close())
}

// sweepTimeout bounds how long Sweep waits for one cluster, which may be gone for good.
const sweepTimeout = 15 * time.Second

// requestsInFlight bounds how long after a driver's death servers execute what it had sent: its connections are closed,
// but servers may not have read them to the end. Sweep drops the table again after it, for records that came meanwhile.
const requestsInFlight = 500 * time.Millisecond

// Sweep drops the tables of trials below dir whose process has died, and returns their names. A table that cannot be
// dropped keeps its directory; the error names it.
func Sweep(ctx context.Context, dir string, databases map[string]database.Database) (dropped []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list tables of trials: %w", err)
	}
	var errs []error
	for _, e := range entries {
		table, err := sweepScratch(ctx, filepath.Join(dir, e.Name()), databases)
		if table != "" {
			dropped = append(dropped, table)
		}
		errs = append(errs, err)
	}
	return dropped, errors.Join(errs...)
}

func sweepScratch(ctx context.Context, path string, databases map[string]database.Database) (table string, err error) {
	lock, err := lockDir(path)
	if errors.Is(err, flock.ErrHeld) || errors.Is(err, fs.ErrNotExist) {
		return "", nil // its process lives, or another Sweep was faster
	}
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", path, err)
	}
	c := &Scratch{path, lock}
	defer func() { err = errors.Join(err, c.Release()) }()
	text, err := os.ReadFile(filepath.Join(path, intentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // it died before it had a table, or after
	}
	if err != nil {
		return "", fmt.Errorf("read the name of a table: %w", err)
	}
	var i intent
	if err := json.Unmarshal(text, &i); err != nil {
		return "", fmt.Errorf("read %s: %w", filepath.Join(path, intentFile), err)
	}
	d, ok := databases[i.Database].(database.External)
	if !ok {
		return "", fmt.Errorf("drop a table of %s: %w", i.Database, database.ErrUnknown)
	}
	what := fmt.Sprintf("drop table %s of %s at %s, which a killed run left", i.Properties[database.PropTable], i.Database, strings.Join(i.Servers, ", "))
	if _, err := database.ReadLogin(i.Properties[database.PropAccess], "", ""); err != nil {
		return "", advice.With(fmt.Errorf("%s: %w", what, err),
			"restore it, as for the killed run, and the next run drops the table; or drop the table yourself, and remove %s", path)
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	err = database.DropTable(ctx, d, i.Properties)
	if err == nil && linger.For(ctx, requestsInFlight) == nil {
		err = database.DropTable(ctx, d, i.Properties)
	}
	if err != nil {
		return "", advice.With(fmt.Errorf("%s: %w", what, err), "if the cluster is gone for good, remove %s", path)
	}
	return i.Properties[database.PropTable], settleIntent(path)
}
