package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
	"skerry/test/testkit/testhost"
)

var (
	errNotYet  = errors.New("not yet")
	errRefused = errors.New("refused")
)

func TestPersist(t *testing.T) {
	lost := errors.New("the cluster is lost")
	for name, c := range map[string]struct {
		answers  []error
		attempts int
		want     error
	}{
		"granted":         {[]error{nil, errRefused}, 1, nil},
		"granted finally": {[]error{errNotYet, errNotYet, nil, errRefused}, 3, nil},
		"refused":         {[]error{errNotYet, errRefused, nil}, 2, errRefused},
		"given up":        {[]error{errNotYet, errNotYet}, 2, lost},
	} {
		attempts := 0
		wait := func(ctx context.Context, ask func(context.Context) error) error {
			for range c.answers {
				if ask(ctx) == nil {
					return nil
				}
			}
			return lost
		}
		final := func(err error) bool { return errors.Is(err, errRefused) }
		err := daemon.RetryChange(t.Context(), wait, final, func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Errorf("%s: a question without an end", name)
			}
			attempts++
			return c.answers[attempts-1]
		})
		if !errors.Is(err, c.want) || attempts != c.attempts {
			t.Errorf("%s: %d attempts, %v", name, attempts, err)
		}
	}
}

// member is a member whose server is a shell.
type member struct {
	node string
	daemon.Seat
}

func (m *member) Name() string { return m.node }

func start(t *testing.T, servers *daemon.Set, h host.Host) *member {
	t.Helper()
	d, err := servers.Start(t.Context(), h, daemon.Spec{
		Command: host.Command{Name: "demo", Path: "/bin/sleep", Args: []string{"1000"}, Log: filepath.Join(h.Dir(), "demo.log")},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{node: h.Name()}
	m.SetServer(d)
	return m
}

func TestRunning(t *testing.T) {
	all := []*member{{node: "a"}, {node: "b"}, {node: "c"}, {node: "d"}}
	if err := all[2].Halt(t.Context(), database.Abrupt); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range daemon.RunningExcept(all, all[0]) {
		names = append(names, m.node)
	}
	if diff := cmp.Diff([]string{"b", "d"}, names); diff != "" {
		t.Error(diff)
	}
	if n := len(daemon.RunningExcept(all, nil)); n != 3 || len(all) != 4 || all[3].node != "d" {
		t.Errorf("%d run, of %d", n, len(all))
	}
}

// A member leaves in every way, with a failure at every step.
func TestLeave(t *testing.T) {
	for name, c := range map[string]struct {
		manner  database.Manner
		fails   string // failing step
		want    []string
		running bool // whether the server runs afterwards
	}{
		"graceful":                     {database.Graceful, "", []string{"may go", "yield", "remove", "forgotten", "drop"}, false},
		"abrupt":                       {database.Abrupt, "", []string{"may go", "remove", "forgotten", "drop"}, false},
		"it may not":                   {database.Graceful, "may go", []string{"may go"}, true},
		"it may not abruptly":          {database.Abrupt, "may go", []string{"may go"}, true},
		"the leader did not step down": {database.Graceful, "yield", []string{"may go", "yield"}, true},
		"the member was not removed":   {database.Graceful, "remove", []string{"may go", "yield", "remove"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			node := testhost.Loopback(t, 1)[0]
			cluster := daemon.NewCluster[*member]("demo", database.Env{})
			defer func() {
				if err := cluster.Servers.Kill(); err != nil {
					t.Error(err)
				}
			}()
			m := start(t, &cluster.Servers, node)
			cluster.Add(m)
			var took []string
			step := func(name string) error {
				took = append(took, name)
				if c.fails == name {
					return errRefused
				}
				return nil
			}
			of := func(name string) func(context.Context, *member) error {
				return func(context.Context, *member) error { return step(name) }
			}
			steps := daemon.QuorumSteps[*member]{
				Check: func(context.Context, *member, database.Manner) error { return step("may go") },
				Yield: of("yield"), Forgotten: of("forgotten"),
				Remove: func(_ context.Context, m *member) error {
					if m.Server().Running() != (c.manner == database.Graceful) {
						t.Errorf("running %t at the removal", m.Server().Running())
					}
					if err := step("remove"); err != nil {
						return err
					}
					return m.Server().Kill() // as the server exits once it detects its removal
				},
				Drop: func(m *member) error {
					if m.Server().Running() {
						t.Error("the member was dropped while its server runs")
					}
					return step("drop")
				},
			}
			change, err := daemon.LeaveQuorum(t.Context(), cluster, node, c.manner, steps)
			if (err != nil) != (c.fails != "") || err != nil && !errors.Is(err, errRefused) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(c.want, took); diff != "" || m.Server().Running() != c.running {
				t.Errorf("running %t; %s", m.Server().Running(), diff)
			}
			if done := change.Complete > 0; done != (err == nil) || done && (change.Accepted <= 0 || change.Accepted > change.Complete) {
				t.Errorf("%+v with %v", change, err)
			}
			if err := cluster.Err(); err != nil {
				t.Errorf("the cluster failed: %v", err)
			}
		})
	}
}

// A removed member may not notice its removal: it is ended when all others have removed it.
func TestForgotten(t *testing.T) {
	node := testhost.Loopback(t, 1)[0]
	cluster := daemon.NewCluster[*member]("demo", database.Env{})
	m := start(t, &cluster.Servers, node)
	cluster.Add(m)
	attempts := 0
	steps := daemon.QuorumSteps[*member]{
		Check:  func(context.Context, *member, database.Manner) error { return nil },
		Remove: func(context.Context, *member) error { return nil },
		Forgotten: func(context.Context, *member) error {
			if attempts++; attempts < 3 {
				return errNotYet
			}
			return m.Server().Kill()
		},
		Drop: func(*member) error { return nil },
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := daemon.LeaveQuorum(ctx, cluster, node, database.Graceful, steps); err != nil || attempts != 3 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
	if err := cluster.Servers.Kill(); err != nil {
		t.Error(err)
	}
}

func TestVotes(t *testing.T) {
	for _, c := range []struct {
		votes daemon.Votes
		may   bool
		why   string
	}{
		{daemon.Votes{All: 1, Own: 1, Others: 0, Helps: true}, false, "the last one"},
		{daemon.Votes{All: 2, Own: 1, Others: 1, Helps: true}, true, "both agree, one of one is left"},
		{daemon.Votes{All: 2, Own: 1, Others: 1}, false, "one of two cannot agree"},
		{daemon.Votes{All: 3, Own: 1, Others: 2, Helps: true}, true, "all serve"},
		{daemon.Votes{All: 3, Own: 1, Others: 2}, true, "two of three agree without the member"},
		{daemon.Votes{All: 3, Own: 1, Others: 1, Helps: true}, false, "two of three agree, but one of two is left"},
		{daemon.Votes{All: 4, Own: 1, Others: 2, Helps: true}, true, "three of four agree, two of three are left"},
		{daemon.Votes{All: 4, Own: 1, Others: 2}, false, "two of four cannot agree"},
		{daemon.Votes{All: 5, Own: 1, Others: 3}, true, "three of five agree, three of four are left"},
		{daemon.Votes{All: 5, Own: 1, Others: 2, Helps: true}, false, "three of five agree, but two of four are left"},
		{daemon.Votes{All: 3, Own: 0, Others: 2}, true, "the member has no vote"},
		{daemon.Votes{All: 3, Own: 0, Others: 1}, false, "the member has no vote and there is no majority"},
	} {
		err := c.votes.Check()
		if c.may != (err == nil) || err != nil && !errors.Is(err, database.ErrFixed) {
			t.Errorf("%s: %+v: %v", c.why, c.votes, err)
		}
	}
}

// If a member may leave a group, a majority by number could agree on it, and can agree on later changes.
func TestMajority(t *testing.T) {
	majority := func(have, of int) bool { return have > of-have }
	for all := 2; all <= 9; all++ {
		for others := range all {
			for _, helps := range []bool{false, true} {
				agree := others
				if helps {
					agree++
				}
				want := majority(agree, all) && majority(others, all-1)
				if err := (daemon.Votes{All: all, Own: 1, Others: others, Helps: helps}).Check(); (err == nil) != want {
					t.Error(fmt.Sprintf("%d of %d, helps %t:", others, all, helps), err)
				}
			}
		}
	}
}
