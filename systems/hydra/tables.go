package hydra

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"skerry/internal/base/atomicfile"
	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
)

// A write that depends on no row is acknowledged when it is committed, before any database has
// it. Whether its table is there is known of the database, which may be behind the log:
//
//  1. member b's database has applied 10, where table t is there;
//  2. a drop of t is acknowledged elsewhere, at 11;
//  3. b commits a write to t at 12 and answers 200. Every database discards it.
//
// So the entries between what the database was known to have and the write are looked at,
// which are in this member's log by then. Where one of them changes tables, which is rare, the
// write is answered when it is applied.

// tableChanges is what is known of changes of tables in the log.
type tableChanges struct {
	mu    sync.Mutex
	from  uint64 // entries after it, up to at, have been looked at
	at    uint64
	last  uint64 // the last of them that changes tables
	begun bool
}

// changeScanBytes is how much of the log is looked at in one go.
const changeScanBytes = 1 << 20

// tablesUnchanged tells whether no entry after since and up to index changes tables, as far as the
// log tells.
func (n *Node) tablesUnchanged(ctx context.Context, since, index uint64) bool {
	if since == 0 {
		return false // nothing is known of the tables
	}
	c := &n.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun {
		c.begun, c.from, c.at = true, since, since
	}
	for c.at < index {
		entries, err := n.log.Entries(ctx, c.at+1, changeScanBytes)
		var compacted *consensus.CompactedError
		if errors.As(err, &compacted) {
			c.from, c.at = compacted.First-1, compacted.First-1
			continue
		}
		if err != nil {
			return false
		}
		for _, e := range entries {
			if c.at = e.Index; command.ChangesTables(e.Data) {
				c.last = e.Index
			}
		}
	}
	return since >= c.from && c.last <= since
}

// requiredTables are the tables that must be there before a transaction for it to be done.
func requiredTables(t *api.Transaction) []string {
	var names []string
	created := make(map[string]bool)
	for _, w := range t.Writes {
		switch {
		case w.Do == command.CreateTable:
			created[w.Table] = true
		case w.Do != command.DropTable && !created[w.Table]:
			names = append(names, w.Table)
		}
	}
	return names
}

// A member that starts while its database is away has a log to write to, and does not know which
// tables there are: a write to one that there is not would be acknowledged, and discarded by
// every database. So it keeps beside its log which there were as of an entry, and goes by that as
// long as the log tells that none has changed since.
//
//	tables.json: as of entry 1000 ──► log: 1001 ... none changes tables ... commit ──► as of now
//
// What tables there are follows from the log alone, wherever the database is when it comes back.
// It is written before the log is told that it may drop what comes before, so that the log
// reaches it; it is not synced, since all that its loss costs is what members without it do:
// they have another one answer.

// tablesFile is where it is, in the member's directory of data.
const tablesFile = "tables.json"

// savedTables are the tables as of an entry of a log.
type savedTables struct {
	Log    string   `json:"log"`
	At     uint64   `json:"at"`
	Tables []string `json:"tables"`
}

// tableCache is what a member keeps of its tables.
type tableCache struct {
	path string // "": nothing is kept

	mu sync.Mutex
	savedTables
}

// load reads what was kept; what cannot be read is nothing.
func (m *tableCache) load(dir string) {
	if dir == "" {
		return
	}
	m.path = filepath.Join(dir, tablesFile)
	var kept savedTables
	if text, err := os.ReadFile(m.path); err == nil && json.Unmarshal(text, &kept) == nil {
		m.savedTables = kept
	}
}

// save writes down what is known, when that is new.
func (m *tableCache) save(now savedTables) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.path == "" || now.Log == m.Log && now.At == m.At {
		return nil
	}
	err := atomicfile.Replace(m.path, 0o600, func(f *os.File) error { return json.NewEncoder(f).Encode(now) })
	if err == nil {
		m.savedTables = now
	}
	return err
}

// saveTables keeps the tables of a database that is the log's.
func (n *Node) saveTables() {
	at, names := n.store.KnownTables()
	if log := n.log.Identity().Log; at > 0 && log != "" {
		if err := n.memory.save(savedTables{log, at, names}); err != nil {
			n.Log.Warn("the tables cannot be kept beside the log", "error", err)
		}
	}
}

// findTables tells up to which entry it is known that the tables of a transaction are there, and
// which of them is not; ok is false where that cannot be told.
func (n *Node) findTables(ctx context.Context, t *api.Transaction) (since uint64, missing string, ok bool) {
	tables := requiredTables(t)
	if n.store.Ready() && n.owned.Load() {
		since, missing = n.store.CheckTables(tables)
		return since, missing, true
	}
	n.memory.mu.Lock()
	kept := n.memory.savedTables
	n.memory.mu.Unlock()
	if n.store.Ready() || kept.At == 0 || kept.Log != n.log.Identity().Log || kept.At > n.log.Commit() || !n.tablesUnchanged(ctx, kept.At, n.log.Commit()) {
		return 0, "", false
	}
	for _, name := range tables {
		if !slices.Contains(kept.Tables, name) {
			return 0, "", false // it may be one that is being made now
		}
	}
	return kept.At, "", true
}
