package hydra

import (
	"context"
	"errors"
	"sync"

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

// changes is what is known of changes of tables in the log.
type changes struct {
	mu    sync.Mutex
	from  uint64 // entries after it, up to at, have been looked at
	at    uint64
	last  uint64 // the last of them that changes tables
	begun bool
}

// lookBytes is how much of the log is looked at in one go.
const lookBytes = 1 << 20

// unchanged tells whether no entry after since and up to index changes tables, as far as the
// log tells.
func (n *Node) unchanged(ctx context.Context, since, index uint64) bool {
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
		entries, err := n.log.Entries(ctx, c.at+1, lookBytes)
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

// wanting are the tables that must be there before a transaction for it to be done.
func wanting(t *api.Transaction) []string {
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
