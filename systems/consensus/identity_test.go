package consensus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"skerry/systems/consensus"
)

// named waits until a member has learned its log's identity.
func (g *group) named(m *member) consensus.Identity {
	g.t.Helper()
	ctx := soon(g.t)
	for m.node.Identity().Log == "" {
		select {
		case <-ctx.Done():
			g.t.Fatalf("%s has not learned its log's identity", m.cfg.Self.Name)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return m.node.Identity()
}

// TestIdentity checks that a log has the same identity at all members, after restarts and at members that
// join late from a snapshot. The log of another cluster with the same name and members has another identity.
func TestIdentity(t *testing.T) {
	g := newGroup(t, three, nil)
	want := g.named(g.leader())
	if !want.Known {
		t.Errorf("a new log: %+v", want)
	}
	g.propose(g.leader(), 0, 20)
	g.same(20)
	for _, m := range g.members {
		m.close()
	}
	for _, m := range g.members {
		m.start()
	}
	g.leader()
	l := listen(t)
	self := consensus.Member{ID: 9, Name: "m9", Addr: l.Addr().String(), Role: consensus.Voter}
	late := g.add(self, l, func(cfg *consensus.Config) { cfg.Join = true })
	if err := g.members[0].node.Add(soon(t), self); err != nil {
		t.Fatal(err)
	}
	late.waitFor(20)
	for _, m := range g.members {
		if got := g.named(m); got != want {
			t.Errorf("%s has the log %+v, want %+v", m.cfg.Self.Name, got, want)
		}
	}
	other := newGroup(t, three, nil)
	if got := other.named(other.leader()); got.Log == want.Log {
		t.Errorf("two logs have the identity %s", got.Log)
	}
}

// A log that begins after an index goes on from there at all members, and is not begun over
// another one.
func TestBegin(t *testing.T) {
	const at = 1000
	g := newGroup(t, three, func(cfg *consensus.Config) {
		if err := consensus.Begin(*cfg, "adopted", at); err != nil {
			t.Fatal(err)
		}
		if err := consensus.Begin(*cfg, "again", 1); err == nil || !strings.Contains(err.Error(), "there is a log") {
			t.Errorf("creating a log over an existing one: %v", err)
		}
	})
	first := g.members[0]
	first.mu.Lock()
	first.applied, first.list = at, []string{"what was before"} // the other members must fetch it
	first.mu.Unlock()
	first.node.Applied(at)
	index, err := g.leader().node.Propose(soon(t), []byte("what came after"))
	if err != nil || index <= at {
		t.Fatalf("the first entry is at %d, %v", index, err)
	}
	for _, m := range g.members {
		if got := fmt.Sprint(m.waitFor(2)); got != "[what was before what came after]" || m.node.Identity().Log != "adopted" {
			t.Errorf("%s has %s of the log %+v", m.cfg.Self.Name, got, m.node.Identity())
		}
	}
}

// TestAnotherLog checks that members with different logs refuse each other. Otherwise, a majority that lost its
// disks and restarted would overwrite the entries of the remaining members.
func TestAnotherLog(t *testing.T) {
	g := newGroup(t, three, nil)
	g.named(g.leader())
	for _, m := range g.members {
		g.named(m)
		m.close()
	}
	for _, m := range g.members[:2] {
		if err := os.RemoveAll(m.cfg.Dir); err != nil {
			t.Fatal(err)
		}
		m.applied, m.list = 0, nil
		m.start()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := g.members[0].node.Propose(ctx, []byte("a new beginning")); err != nil {
		t.Fatal(err)
	}
	g.named(g.members[0])
	g.named(g.members[1])
	kept := g.members[2]
	kept.start()
	g.awaitStatus(kept, "refused by both", func(s consensus.Status) bool {
		refused := 0
		for _, m := range s.Members {
			if strings.Contains(m.Error, consensus.ErrLog.Error()) {
				refused++
			}
		}
		return refused == 2
	})
	if err := kept.node.Err(); err != nil && !errors.Is(err, consensus.ErrClosed) {
		t.Errorf("the member has stopped: %v", err)
	}
}
