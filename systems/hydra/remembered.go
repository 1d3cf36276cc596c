package hydra

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"skerry/internal/base/atomicfile"
	"skerry/systems/hydra/api"
)

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

// remembered are the tables as of an entry of a log.
type remembered struct {
	Log    string   `json:"log"`
	At     uint64   `json:"at"`
	Tables []string `json:"tables"`
}

// memory is what a member keeps of its tables.
type memory struct {
	path string // "": nothing is kept

	mu sync.Mutex
	remembered
}

// recall reads what was kept; what cannot be read is nothing.
func (m *memory) recall(dir string) {
	if dir == "" {
		return
	}
	m.path = filepath.Join(dir, tablesFile)
	var kept remembered
	if text, err := os.ReadFile(m.path); err == nil && json.Unmarshal(text, &kept) == nil {
		m.remembered = kept
	}
}

// keep writes down what is known, when that is new.
func (m *memory) keep(now remembered) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.path == "" || now.Log == m.Log && now.At == m.At {
		return nil
	}
	err := atomicfile.Replace(m.path, 0o600, func(f *os.File) error { return json.NewEncoder(f).Encode(now) })
	if err == nil {
		m.remembered = now
	}
	return err
}

// remember keeps the tables of a database that is the log's.
func (n *Node) remember() {
	at, names := n.store.Known()
	if log := n.log.Identity().Log; at > 0 && log != "" {
		if err := n.memory.keep(remembered{log, at, names}); err != nil {
			n.Log.Warn("the tables cannot be kept beside the log", "error", err)
		}
	}
}

// standing tells up to which entry it is known that the tables of a transaction are there, and
// which of them is not; ok is false where that cannot be told.
func (n *Node) standing(ctx context.Context, t *api.Transaction) (since uint64, missing string, ok bool) {
	tables := wanting(t)
	if n.store.Ready() && n.sure.Load() {
		since, missing = n.store.Standing(tables)
		return since, missing, true
	}
	n.memory.mu.Lock()
	kept := n.memory.remembered
	n.memory.mu.Unlock()
	if n.store.Ready() || kept.At == 0 || kept.Log != n.log.Identity().Log || kept.At > n.log.Commit() || !n.unchanged(ctx, kept.At, n.log.Commit()) {
		return 0, "", false
	}
	for _, name := range tables {
		if !slices.Contains(kept.Tables, name) {
			return 0, "", false // it may be one that is being made now
		}
	}
	return kept.At, "", true
}
