package consensus_test

import (
	"testing"
	"time"

	"skerry/systems/consensus"
)

// TestMaxAge has a member be away for longer than the log waits: what it lacks is dropped
// though there is room, and it gets a state when it is back.
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
	g.awaitStatus(lead, "without what the other lacks", func(s consensus.Status) bool { return s.First > had+1 })
	away.start()
	away.waitFor(20)
	away.mu.Lock()
	defer away.mu.Unlock()
	if away.loads == 0 {
		t.Error("it got no state")
	}
}

// TestNoMaxAge is the same where the log waits for as long as there is room.
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
		t.Error("it got a state, though the log had what it lacked")
	}
}
