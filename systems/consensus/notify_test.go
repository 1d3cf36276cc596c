package consensus_test

import (
	"testing"
	"time"
)

// TestSubscribe subscribes one member to the applied index of another. The subscriber is notified at once
// and after each batch; other members are not notified.
func TestSubscribe(t *testing.T) {
	g := newGroup(t, three, nil)
	g.propose(g.leader(), 0, 1)
	asking, applying, other := g.members[0].node, g.members[1].node, g.members[2].node
	if asking.Subscribe(99) {
		t.Error("subscribed to a member that does not exist")
	}
	for ctx := soon(t); !asking.Subscribe(2); time.Sleep(10 * time.Millisecond) { // they may not be connected yet
		if ctx.Err() != nil {
			t.Fatal("cannot subscribe to member 2")
		}
	}
	for range 3 {
		select {
		case <-asking.Notified():
		case <-soon(t).Done():
			t.Fatal("no notification arrived")
		}
		asking.Subscribe(2) // the subscription lasts one second, which may have passed on a slow machine
		applying.NotifySubscribers()
	}
	select {
	case <-other.Notified():
		t.Error("a member without a subscription was notified")
	default:
	}
}
