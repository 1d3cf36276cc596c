package dbtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/machine/host"
)

func (s *suite) testRefusals(t *testing.T, cluster database.Cluster) {
	ctx, cancel := s.withTimeout(t)
	defer cancel()
	member, stranger := s.hosts[0], s.hosts[s.Nodes] // a spare node, or the client's
	if !s.can.Resize {
		_, join := cluster.Join(ctx, stranger)
		_, leave := cluster.Leave(ctx, member, database.Graceful)
		for what, err := range map[string]error{"join": join, "leave": leave} {
			if !errors.Is(err, database.ErrUnsupported) {
				t.Errorf("%s: %v, want database.ErrUnsupported", what, err)
			}
		}
		s.row.markUnclaimed("churn", "lost_joiner")
	} else {
		if _, err := cluster.Join(ctx, member); !errors.Is(err, database.ErrMember) {
			t.Errorf("join of a member: %v, want database.ErrMember", err)
		}
		if _, err := cluster.Leave(ctx, stranger, database.Graceful); !errors.Is(err, database.ErrNotMember) {
			t.Errorf("leave of a non-member: %v, want database.ErrNotMember", err)
		}
		if !s.can.LeaveAbrupt {
			if _, err := cluster.Leave(ctx, member, database.Abrupt); !errors.Is(err, database.ErrUnsupported) {
				t.Errorf("an abrupt leave: %v, want database.ErrUnsupported", err)
			}
		}
		for name, why := range s.fixedNodes() {
			if _, err := cluster.Leave(ctx, s.findHost(t, name), database.Graceful); !errors.Is(err, database.ErrFixed) {
				t.Errorf("leave of %s (%s): %v, want database.ErrFixed", name, why, err)
			}
		}
	}
	if !s.can.Restart {
		halt := cluster.Halt(ctx, member, database.Graceful)
		revive := cluster.Revive(ctx, member)
		for what, err := range map[string]error{"halt": halt, "revive": revive} {
			if !errors.Is(err, database.ErrUnsupported) {
				t.Errorf("%s: %v, want database.ErrUnsupported", what, err)
			}
		}
		s.row.markUnclaimed("halt", "kill")
	} else if err := cluster.Halt(ctx, stranger, database.Graceful); !errors.Is(err, database.ErrNotMember) {
		t.Errorf("halt of a non-member: %v, want database.ErrNotMember", err)
	}
	s.expectMembers(t, cluster, s.hostNames(0, s.Nodes))
	if err := cluster.Ready(ctx); err != nil {
		t.Errorf("after refused changes: %v", err)
	}
}

func (s *suite) fixedNodes() map[string]string {
	a, ok := s.db.(database.Anchored)
	if !ok {
		return nil
	}
	return a.Fixed(s.hostNames(0, s.Nodes), s.Options)
}

func (s *suite) findHost(t *testing.T, name string) host.Host {
	t.Helper()
	for _, h := range s.hosts {
		if h.Name() == name {
			return h
		}
	}
	t.Fatalf("unknown node %s", name)
	return nil
}

func (s *suite) memberNames(t *testing.T, cluster database.Cluster) []string {
	t.Helper()
	members, err := cluster.Members(t.Context())
	if err != nil {
		t.Fatalf("listing the members: %v", err)
	}
	var names []string
	for _, m := range members {
		names = append(names, m.Node)
	}
	return names
}

// testChurn joins and removes members at random during writes. The first changes are two joins at once.
func (s *suite) testChurn(t *testing.T, cluster database.Cluster) {
	if !s.can.Resize {
		t.Skip("the database cannot be resized")
	}
	s.clearTable(t, cluster)
	s.joinTwice(t, cluster)
	var nodes []host.Host
	for _, h := range s.hosts[:s.Nodes+s.Spare] {
		nodes = append(nodes, h)
	}
	members := s.memberNames(t, cluster)
	plan := ChurnPlan{
		Changes: int(settingInt(t, "SKERRY_CHANGES", 2)), Seed: uint64(settingInt(t, "SKERRY_SEED", rand.Int64N(1e6))),
		Nodes: nodes, Members: members, Least: max(s.can.MinNodes, 1), Fixed: s.fixedNodes(), Abrupt: s.LeavesAbruptly,
		Writers: 4, Rate: 100, Timeout: s.Timeout, Progress: func(step string) { t.Log(step) },
	}
	t.Logf("SKERRY_SEED=%d SKERRY_CHANGES=%d repeat this", plan.Seed, plan.Changes)
	report, err := RunChurn(t.Context(), cluster, s.clientOpener(cluster), plan)
	s.row.Churn = &report
	if err != nil {
		t.Fatalf("%v; rows %+v", err, report.WriteCounts)
	}
	if report.Writes == 0 {
		t.Errorf("no write was acknowledged: %+v", report.WriteCounts)
	}
	t.Logf("rows: %+v", report.WriteCounts)
	s.checkCount(t, cluster, report.Rows, report.Rows+report.Failed+report.InDoubt)
}

func (s *suite) checkCount(t *testing.T, cluster database.Cluster, least, most int64) {
	t.Helper()
	if n, err := cluster.Count(t.Context()); err != nil || n < least || n > most {
		t.Errorf("count %d, %v; want %d to %d", n, err, least, most)
	}
}

// joinTwice starts two joins at the same time: the second one waits or is refused.
func (s *suite) joinTwice(t *testing.T, cluster database.Cluster) {
	t.Helper()
	if s.Spare < 2 || s.can.MaxNodes > 0 && s.Nodes+2 > s.can.MaxNodes {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*s.Timeout)
	defer cancel()
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i := range errs {
		both.Go(func() { _, errs[i] = cluster.Join(ctx, s.hosts[s.Nodes+i]) })
	}
	both.Wait()
	want := s.hostNames(0, s.Nodes)
	for i, err := range errs {
		switch {
		case err == nil:
			want = append(want, s.hosts[s.Nodes+i].Name())
		case !errors.Is(err, database.ErrBusy):
			t.Errorf("one of two concurrent joins: %v, want a wait or database.ErrBusy", err)
		}
	}
	if len(want) == s.Nodes {
		t.Fatal("neither of two concurrent joins succeeded")
	}
	s.expectMembers(t, cluster, want)
	if err := cluster.Ready(ctx); err != nil {
		t.Fatalf("after two concurrent joins: %v", err)
	}
}

func (s *suite) testHalt(t *testing.T, cluster database.Cluster) {
	s.haltAndRevive(t, cluster, database.Graceful)
}

func (s *suite) testKill(t *testing.T, cluster database.Cluster) {
	s.haltAndRevive(t, cluster, database.Abrupt)
}

func (s *suite) haltAndRevive(t *testing.T, cluster database.Cluster, manner database.Manner) {
	t.Helper()
	if !s.can.Restart {
		t.Skip("members cannot be restarted")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*s.Timeout)
	defer cancel()
	members := s.memberNames(t, cluster)
	victim := s.findHost(t, members[len(members)-1])
	ledger := NewLedger("h" + manner.String())
	open := s.clientOpener(cluster)
	stop, err := StartWriters(ctx, ledger, open, 4, 200)
	if err != nil {
		t.Fatal(err)
	}
	s.awaitRows(ctx, t, ledger, 50)
	if err := cluster.Halt(ctx, victim, manner); err != nil {
		t.Errorf("halt: %v", errors.Join(err, stop()))
		return
	}
	if left := victim.(*hostRecorder).running(); len(left) > 0 {
		t.Errorf("%d processes run on %s, which was halted", len(left), victim.Name())
	}
	select {
	case <-cluster.Failed():
		t.Errorf("a halt counts as a failure: %v", cluster.Err())
	default:
	}
	began := time.Now()
	err = cluster.Revive(ctx, victim)
	s.row.setFigure("revive_after_"+aspectName(manner)+"_seconds", time.Since(began).Seconds())
	if err := errors.Join(err, stop()); err != nil {
		t.Fatalf("revive: %v", err)
	}
	if err := cluster.Ready(ctx); err != nil {
		t.Errorf("after the revival: %v", err)
	}
	s.expectMembers(t, cluster, members)
	account, err := ledger.Check(ctx, open, 4)
	t.Logf("rows: %+v", account)
	if err != nil {
		t.Fatalf("reading the rows back: %v", err)
	}
	s.row.setAccount(aspectName(manner), account)
	if err := account.Err(); err != nil && (manner == database.Graceful || s.Survives) {
		t.Error(err)
	}
}

func aspectName(m database.Manner) string {
	if m == database.Abrupt {
		return "kill"
	}
	return "halt"
}

func (s *suite) awaitRows(ctx context.Context, t *testing.T, l *Ledger, n int64) {
	t.Helper()
	for {
		if least, _ := l.Rows(); least >= n {
			return
		}
		if err := linger.For(ctx, 10*time.Millisecond); err != nil {
			t.Fatalf("waiting for %d written rows: %v", n, err)
		}
	}
}

// testLostJoiner kills a joining node. The join fails, all rows stay, and the node can join afterwards.
func (s *suite) testLostJoiner(t *testing.T, cluster database.Cluster) {
	if !s.can.Resize {
		t.Skip("the database cannot be resized")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*s.Timeout)
	defer cancel()
	before := s.memberNames(t, cluster)
	joiner := s.findOutsider(before)
	if joiner == nil {
		leaver := s.findLeaver(t, before)
		if leaver == nil {
			t.Skip("every node is a member and none may leave")
		}
		if _, err := cluster.Leave(ctx, leaver, database.Graceful); err != nil {
			t.Fatalf("making room: %v", err)
		}
		joiner, before = leaver, s.memberNames(t, cluster)
	}
	ledger, open := NewLedger("j"), s.clientOpener(cluster)
	stop, err := StartWriters(ctx, ledger, open, 2, 100)
	if err != nil {
		t.Fatal(err)
	}
	s.awaitRows(ctx, t, ledger, 50)
	killed, err := joinKilled(ctx, cluster, joiner, s.KillJoiner)
	if err == nil && !killed { // the join had ended by then
		if _, err := cluster.Leave(ctx, joiner, database.Graceful); err != nil {
			t.Fatalf("making room for another join: %v", err)
		}
		_, err = joinKilled(ctx, cluster, joiner, 0)
	}
	if err == nil {
		t.Error("a join whose node was killed succeeded")
	}
	t.Logf("the join returned: %v", err)
	if err := errors.Join(cluster.Ready(ctx), stop()); err != nil {
		t.Fatalf("the other members after the joining node was killed: %v", err)
	}
	s.expectMembers(t, cluster, before)
	if _, err := cluster.Join(ctx, joiner); err != nil {
		t.Fatalf("joining again: %v", err)
	}
	account, err := ledger.Check(ctx, open, 4)
	if err := errors.Join(err, account.Err()); err != nil {
		t.Error(err)
	}
}

// joinKilled joins a node and kills its processes after a time. killed is false if the join ended first.
func joinKilled(ctx context.Context, cluster database.Cluster, joiner *hostRecorder, after time.Duration) (killed bool, err error) {
	var kill atomic.Bool
	var kills sync.WaitGroup
	over := make(chan struct{})
	joiner.override("", func(p host.Process) {
		if after == 0 {
			kill.Store(true)
			_ = p.Signal(syscall.SIGKILL) // the result of the join shows the effect
			return
		}
		kills.Go(func() {
			select {
			case <-p.Done():
			case <-over:
			case <-time.After(after):
				kill.Store(true)
				_ = p.Signal(syscall.SIGKILL)
			}
		})
	})
	_, err = cluster.Join(ctx, joiner)
	close(over)
	kills.Wait()
	joiner.override("", nil)
	return kill.Load(), err
}

func (s *suite) findOutsider(members []string) *hostRecorder {
	is := make(map[string]bool)
	for _, m := range members {
		is[m] = true
	}
	for _, h := range s.hosts[:s.Nodes+s.Spare] {
		if !is[h.Name()] {
			return h
		}
	}
	return nil
}

func (s *suite) findLeaver(t *testing.T, members []string) *hostRecorder {
	t.Helper()
	fixed := s.fixedNodes()
	if len(members) <= s.can.MinNodes {
		return nil
	}
	for i := len(members) - 1; i >= 0; i-- {
		if fixed[members[i]] == "" {
			return s.findHost(t, members[i]).(*hostRecorder)
		}
	}
	return nil
}

func (s *suite) testStop(t *testing.T, cluster database.Cluster) {
	ctx, cancel := s.withTimeout(t)
	defer cancel()
	for range 2 {
		if err := cluster.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	s.checkNothingLeft(t)
	select {
	case <-cluster.Failed():
		t.Errorf("a stop counts as a failure: %v", cluster.Err())
	default:
	}
}
