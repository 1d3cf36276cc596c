package consensus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"skerry/systems/consensus"
)

func TestPropose(t *testing.T) {
	g := newGroup(t, three, nil)
	lead := g.leader()
	g.propose(lead, 0, 200)
	g.propose(g.other(lead), 200, 200)
	g.same(400)
	index, err := g.other(lead).node.ReadIndex(soon(t))
	if err != nil || index < 402 {
		t.Errorf("read index %d, %v", index, err)
	}
	st := lead.node.Status()
	if st.State != "leader" || len(st.Members) != 3 || st.Commit < 402 {
		t.Errorf("status %+v", st)
	}
	if st.Syncs >= 400 {
		t.Errorf("400 proposals took %d syncs", st.Syncs)
	}
}

func TestLeaderLost(t *testing.T) {
	g := newGroup(t, three, nil)
	lead := g.leader()
	g.propose(lead, 0, 50)
	follower := g.other(lead)
	var wg sync.WaitGroup
	wg.Go(func() { g.propose(follower, 50, 50) })
	lead.close()
	wg.Wait()
	g.propose(follower, 100, 50)
	g.same(150)
	lead.start()
	g.same(150)
}

func TestRestartAll(t *testing.T) {
	g := newGroup(t, three, nil)
	g.propose(g.leader(), 0, 100)
	for _, m := range g.members {
		m.close()
	}
	for _, m := range g.members {
		m.start()
	}
	g.propose(g.members[0], 100, 100)
	g.same(200)
}

// TestMove restarts all members of a cluster at new addresses.
func TestMove(t *testing.T) {
	g := newGroup(t, three, nil)
	g.propose(g.leader(), 0, 20)
	var members []consensus.Member
	for _, m := range g.members {
		m.close()
		m.cfg.Listener = listen(t)
		m.cfg.Self.Addr = m.cfg.Listener.Addr().String()
		members = append(members, m.cfg.Self)
	}
	for _, m := range g.members {
		m.cfg.Members = members
		m.start()
	}
	g.propose(g.members[0], 20, 20)
	g.same(40)
}

func TestWitness(t *testing.T) {
	g := newGroup(t, []consensus.Role{consensus.Voter, consensus.Voter, consensus.Witness}, nil)
	w := g.members[2]
	g.propose(g.members[0], 0, 10)
	if _, err := w.node.Entries(soon(t), 1, 100); !errors.Is(err, consensus.ErrWitness) {
		t.Errorf("entries of a witness: %v", err)
	}
	g.propose(w, 10, 10)
	g.members[0].close()
	g.propose(g.members[1], 20, 10)
	g.same(30)
}

func TestAddAndRemove(t *testing.T) {
	g := newGroup(t, three, nil)
	g.propose(g.leader(), 0, 100)
	l := listen(t)
	four := consensus.Member{ID: 4, Name: "m4", Addr: l.Addr().String(), Role: consensus.Voter}
	if err := g.members[1].node.Add(soon(t), four); err != nil {
		t.Fatal(err)
	}
	m := g.add(four, l, func(cfg *consensus.Config) { cfg.Join = true })
	g.same(100)
	g.awaitStatus(m, "promoted", func(s consensus.Status) bool {
		return len(s.Members) == 4 && s.Members[3].Votes
	})
	old := g.leader()
	if err := m.node.Remove(soon(t), old.cfg.Self.ID); err != nil {
		t.Fatal(err)
	}
	select {
	case <-old.node.Done():
		if !errors.Is(old.node.Err(), consensus.ErrRemoved) {
			t.Errorf("the removed member ended with %v", old.node.Err())
		}
	case <-time.After(patience):
		t.Fatal("the removed member did not stop")
	}
	old.close()
	g.propose(m, 100, 100)
	g.same(200)
	if err := m.node.Add(soon(t), old.cfg.Self); !errors.Is(err, consensus.ErrNotDone) {
		t.Errorf("adding the removed member again: %v", err)
	}
}

// TestSnapshot stops a member until the log no longer has the entries it missed.
func TestSnapshot(t *testing.T) {
	g := newGroup(t, three, func(cfg *consensus.Config) { cfg.MaxLog = 1 << 20 })
	lead := g.leader()
	away := g.other(lead)
	away.close()
	big := bytes.Repeat([]byte("x"), 20000)
	ctx := soon(t)
	count := 0
	for ; count < 150; count++ {
		if _, err := lead.node.Propose(ctx, fmt.Appendf(nil, "%d %s", count, big)); err != nil {
			if !errors.Is(err, consensus.ErrLogFull) {
				t.Fatal(err)
			}
			count--
		}
	}
	g.awaitStatus(lead, "compacted", func(s consensus.Status) bool { return s.First > 40 && s.LogBytes <= 1<<20+256<<10 })
	away.start()
	g.same(150)
	if away.loads == 0 {
		t.Error("the returning member loaded no snapshot")
	}
	index, err := away.node.ReadIndex(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	g.awaitStatus(away, "caught up", func(s consensus.Status) bool { return s.Commit >= index })
	g.propose(away, 150, 10)
	g.same(160)
}

// TestLaggingSourceIsRejected fetches the state from a member whose consumer was reset. The log no longer has
// the entries after that state, so the state is rejected and another member's is loaded.
func TestLaggingSourceIsRejected(t *testing.T) {
	g := newGroup(t, three, func(cfg *consensus.Config) { cfg.MaxLog = 1 << 20 })
	big := strings.Repeat("x", 20000)
	for i := range 150 {
		for {
			_, err := g.leader().node.Propose(soon(t), fmt.Appendf(nil, "%d %s", i, big))
			if err == nil {
				break
			}
			if !errors.Is(err, consensus.ErrLogFull) {
				t.Fatal(err)
			}
		}
	}
	g.same(150)
	lost, source := g.members[0], g.members[1]
	g.awaitStatus(lost, "compacted", func(s consensus.Status) bool { return s.First > 40 })
	source.mu.Lock()
	source.lags = true
	source.mu.Unlock()
	lost.mu.Lock()
	lost.list, lost.applied = nil, 0
	lost.mu.Unlock()
	if index, err := lost.node.Fetch(soon(t), source.cfg.Self.ID); err == nil || !strings.Contains(err.Error(), "saved its state at 1") {
		t.Errorf("fetching from a lagging member: state at %d, %v", index, err)
	}
	if index, err := lost.node.Fetch(soon(t), 0); err != nil || index <= 40 {
		t.Errorf("fetching from any member: state at %d, %v", index, err)
	}
	g.same(150)
}

func TestTransfer(t *testing.T) {
	g := newGroup(t, three, nil)
	to := g.other(g.leader())
	if err := g.members[0].node.Transfer(soon(t), to.cfg.Self.ID); err != nil {
		t.Fatal(err)
	}
	g.awaitStatus(to, "leader", func(s consensus.Status) bool { return s.State == "leader" })
}

func TestPreferSite(t *testing.T) {
	g := newGroup(t, three, func(cfg *consensus.Config) { cfg.PreferSite, cfg.Election = "site2", 300*time.Millisecond })
	g.awaitStatus(g.members[1], "leader", func(s consensus.Status) bool { return s.State == "leader" })
}

func TestNoLeader(t *testing.T) {
	g := newGroup(t, three, nil)
	lead := g.leader()
	for _, m := range g.members {
		if m != lead {
			m.close()
		}
	}
	g.awaitStatus(lead, "without majority", func(s consensus.Status) bool { return s.State != "leader" })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := lead.node.Propose(ctx, nil); !errors.Is(err, consensus.ErrNotDone) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("proposing without a leader: %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	g := newGroup(t, three[:1], nil)
	_, err := g.members[0].node.Propose(soon(t), make([]byte, consensus.MaxEntry+1))
	if !errors.Is(err, consensus.ErrTooLarge) || !errors.Is(err, consensus.ErrNotDone) {
		t.Errorf("proposing an entry over the limit: %v", err)
	}
	if _, err := g.members[0].node.Propose(soon(t), make([]byte, consensus.MaxEntry)); err != nil {
		t.Errorf("proposing an entry of the maximum size: %v", err)
	}
}

func TestFetch(t *testing.T) {
	g := newGroup(t, three, nil)
	g.propose(g.leader(), 0, 100)
	g.same(100)
	m := g.members[0]
	m.mu.Lock()
	m.list, m.applied = nil, 0
	m.mu.Unlock()
	index, err := m.node.Fetch(soon(t), 0)
	if err != nil || index < 102 {
		t.Fatalf("fetched a state at %d, %v", index, err)
	}
	g.same(100)
}
