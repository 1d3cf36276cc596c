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

// A write that depends on no row is acknowledged at commit, before any database applies it.
// The member checks the write's table in its database, which may be behind the log:
//
//  1. Member b's database has applied entry 10, where table t exists.
//  2. A drop of t is acknowledged elsewhere, at entry 11.
//  3. b commits a write to t at entry 12 and answers 200. Every database discards the write.
//
// So the member scans the log between the database's index and the write. If an entry there
// changes tables, which is rare, the write is answered only after it is applied.

type tableChanges struct {
	mu    sync.Mutex
	from  uint64 // the entries in (from, at] were scanned
	at    uint64
	last  uint64 // the last scanned entry that changes tables
	begun bool
}

const changeScanBytes = 1 << 20

// tablesUnchanged reports whether the log shows no change of tables in (since, index], and still has these entries.
func (n *Node) tablesUnchanged(ctx context.Context, since, index uint64) bool {
	if since == 0 {
		return false
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

// A member that starts without its database can write to the log but does not know the tables. A write to a missing
// table would be acknowledged, and then discarded by every database. So the member saves the list of tables as of an
// entry next to its log, and uses it while the log shows no change since.
//
//	tables.json: as of entry 1000 ──► log: 1001 ... none changes tables ... commit ──► as of now
//
// The tables follow from the log alone, whatever state the database returns with. The file is
// written before the log may drop the entries before it, so the log always reaches it. The
// file is not synced: without it, the member only forwards such writes.

const tablesFile = "tables.json"

// savedTables is the list of tables as of entry At of a log.
type savedTables struct {
	Log    string   `json:"log"`
	At     uint64   `json:"at"`
	Tables []string `json:"tables"`
}

type tableCache struct {
	path string // "": disabled

	mu sync.Mutex
	savedTables
}

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

func (n *Node) saveTables() {
	at, names := n.store.KnownTables()
	if log := n.log.Identity().Log; at > 0 && log != "" {
		if err := n.memory.save(savedTables{log, at, names}); err != nil {
			n.Log.Warn("the tables cannot be kept beside the log", "error", err)
		}
	}
}

// findTables returns the entry up to which tables are known to exist, and the first missing one. ok: they are known.
func (n *Node) findTables(ctx context.Context, t *api.Transaction) (since uint64, missing string, ok bool) {
	tables := requiredTables(t)
	if n.store.Ready() && n.owned.Load() {
		since, missing = n.store.CheckTables(tables)
		return since, missing, true
	}
	n.memory.mu.Lock()
	kept := n.memory.savedTables
	n.memory.mu.Unlock()
	if n.store.Ready() || kept.At == 0 || kept.Log != n.log.Identity().Log || kept.At > n.log.Commit() ||
		!n.tablesUnchanged(ctx, kept.At, n.log.Commit()) {
		return 0, "", false
	}
	for _, name := range tables {
		if !slices.Contains(kept.Tables, name) {
			return 0, "", false // the table may be under creation
		}
	}
	return kept.At, "", true
}
