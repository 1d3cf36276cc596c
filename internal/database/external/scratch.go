package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/machine/journal"
)

// Scratch is the directory of a trial on this machine: its clients' files, and the name of its table until that is
// dropped. The process that made it holds a lock on it.
type Scratch struct{ dir *journal.LockedDir }

// intent is the table that a trial may have made.
type intent struct {
	Database   string            `json:"database"`
	Servers    []string          `json:"servers"`
	Properties map[string]string `json:"properties"` // of its clients, with the table
	Created    time.Time         `json:"created"`
}

const intentFile = "table.json"

// NewScratch makes the scratch directory of a name below dir.
func NewScratch(ctx context.Context, dir, name string) (*Scratch, error) {
	locked, err := journal.NewLockedDir(ctx, dir, name)
	if err != nil {
		return nil, fmt.Errorf("make directory of trial: %w", err)
	}
	return &Scratch{locked}, nil
}

// Dir is the scratch directory's directory, which Release removes, or "" for nil.
func (c *Scratch) Dir() string {
	if c == nil {
		return ""
	}
	return c.dir.Path
}

// ScratchRoot is the directory of all scratch directories of this machine, below the directory of nodes.
func ScratchRoot(dataDir string) string {
	return filepath.Join(cmp.Or(dataDir, journal.DefaultDataDir()), "clusters")
}

// recordIntent writes the table's name to the disk, in a scratch directory. Only then clients may connect.
func recordIntent(dir string, i intent) error {
	if err := journal.WriteRecord(dir, intentFile, i); err != nil {
		return fmt.Errorf("record the name of the table: %w", err)
	}
	return nil
}

// settle removes a record once its table is dropped, or its command has run.
func settle(dir, file string) error {
	if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of trial: %w", err)
	}
	return nil
}

// Release gives the directory up. One with a table that was not dropped is left to Sweep.
func (c *Scratch) Release(ctx context.Context) error {
	if c == nil {
		return nil
	}
	_, err := os.Stat(filepath.Join(c.dir.Path, intentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c.dir.Remove(ctx)
	}
	return errors.Join(err, c.dir.Leave())
}

// sweepTimeout bounds how long Sweep waits for one cluster, which may be gone for good.
const sweepTimeout = 15 * time.Second

// requestsInFlight bounds how long after a driver's death servers execute what it had sent: its connections are closed,
// but servers may not have read them to the end. Sweep drops the table again after it, for records that came meanwhile.
const requestsInFlight = 500 * time.Millisecond

// Sweep drops the tables of trials below dir whose process has died, and runs their down, or the join or leave that gives
// the cluster its servers back. It returns what it did, as sentences. What cannot be done keeps its directory; the error
// names it.
func Sweep(ctx context.Context, dir string, databases map[string]database.Database) (done []string, err error) {
	return journal.SweepLockedDirs(ctx, dir, func(c *journal.LockedDir) (string, error) {
		var did []string
		table, tableErr := dropRemains(ctx, c, databases)
		if table != "" {
			did = append(did, "dropped the tables of a killed run: "+table)
		}
		command, undoErr := runRecordedUndo(ctx, c)
		if command != "" {
			did = append(did, "ran a command of the cluster of a killed run: "+command)
		}
		return strings.Join(did, "\n"), errors.Join(tableErr, undoErr)
	})
}

func dropRemains(ctx context.Context, c *journal.LockedDir, databases map[string]database.Database) (table string, err error) {
	var i intent
	if ok, err := c.ReadRecord(intentFile, &i); err != nil || !ok { // without a record, it died before it had a table, or after
		return "", err
	}
	name := i.Database
	if strings.HasPrefix(name, database.Exec+":") && databases[name] == nil { // its clients read all settings from their properties
		name = database.Exec
	}
	d, ok := databases[name].(database.External)
	if !ok {
		return "", fmt.Errorf("drop a table of %s: %w", i.Database, database.ErrUnknown)
	}
	what := fmt.Sprintf("drop table %s of %s at %s, which a killed run left",
		i.Properties[database.PropTable], i.Database, strings.Join(i.Servers, ", "))
	if _, err := database.ReadLogin(i.Properties[database.PropAccess], "", ""); err != nil {
		return "", advice.With(fmt.Errorf("%s: %w", what, err),
			"restore it, as for the killed run, and the next run drops the table; or drop the table yourself, and remove %s", c.Path)
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	err = database.DropTable(ctx, d, i.Properties)
	if err == nil && linger.For(ctx, requestsInFlight) == nil {
		err = database.DropTable(ctx, d, i.Properties)
	}
	if err != nil {
		return "", advice.With(fmt.Errorf("%s: %w", what, err), "if the cluster is gone for good, remove %s", c.Path)
	}
	return i.Properties[database.PropTable], settle(c.Path, intentFile)
}
