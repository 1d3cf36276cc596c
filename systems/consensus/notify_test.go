package consensus_test

import (
	"testing"
	"time"
)

// TestTold has a member ask another one to tell it of what it applies: it is told at once and with
// each batch, and others are not.
func TestTold(t *testing.T) {
	g := newGroup(t, three, nil)
	g.propose(g.leader(), 0, 1)
	asking, applying, other := g.members[0].node, g.members[1].node, g.members[2].node
	if asking.Subscribe(99) {
		t.Error("a member that there is not was asked")
	}
	for ctx := soon(t); !asking.Subscribe(2); time.Sleep(10 * time.Millisecond) { // they may not have met yet
		if ctx.Err() != nil {
			t.Fatal("member 2 cannot be asked")
		}
	}
	for range 3 {
		select {
		case <-asking.Notified():
		case <-soon(t).Done():
			t.Fatal("nothing was told")
		}
		asking.Subscribe(2) // the second is over on a slow machine
		applying.NotifySubscribers()
	}
	select {
	case <-other.Notified():
		t.Error("a member was told that did not ask")
	default:
	}
}
