package consensus_test

import (
	"testing"
	"time"

	"skerry/systems/consensus"
)

// TestMaxAge stops a member for longer than the log keeps entries for it. The leader drops the missing
// entries although there is room, and the member receives a snapshot when it returns.
func TestMaxAge(t *testing.T) {
	g := newGroup(t, three, func(cfg *consensus.Config) { cfg.MaxAge = 400 * time.Millisecond })
	g.propose(g.leader(), 0, 10)
	g.same(10)
	away := g.other(g.leader())
	away.close()
	lead := g.leader()
	g.propose(lead, 10, 10)
	away.mu.Lock()
	had := away.applied
	away.mu.Unlock()
	lead.waitFor(20)
	g.awaitStatus(lead, "compacted past the entries that the other member lacks", func(s consensus.Status) bool { return s.First > had+1 })
	away.start()
	away.waitFor(20)
	away.mu.Lock()
	defer away.mu.Unlock()
	if away.loads == 0 {
		t.Error("the member received no snapshot")
	}
}

// TestNoMaxAge repeats TestMaxAge without an age limit: the log keeps entries as long as there is room.
func TestNoMaxAge(t *testing.T) {
	g := newGroup(t, three, nil)
	g.propose(g.leader(), 0, 10)
	g.same(10)
	away := g.other(g.leader())
	away.close()
	g.propose(g.leader(), 10, 200)
	away.start()
	away.waitFor(210)
	away.mu.Lock()
	defer away.mu.Unlock()
	if away.loads != 0 {
		t.Error("the member received a snapshot although the log had all missing entries")
	}
}
