package galera

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/database/mysql"
	"skerry/internal/load"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

func fields(v string) []load.Field { return []load.Field{{Name: "field0", Value: []byte(v)}} }

// TestMembership lets members join, leave, halt and return in every way.
func TestMembership(t *testing.T) {
	nodes := testhost.Loopback(t, 4)
	g, c := startCluster(t, nodes[:3], nil) // with default timeouts: shorter ones expire on a busy machine
	client := dbtest.Open(t, g, c.Properties())
	rows := int64(0)
	write := func() {
		t.Helper()
		for range 100 {
			rows++
			if err := client.Insert(t.Context(), "", fmt.Sprint("user", rows), fields("v")); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(members int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := c.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, err := c.Members(t.Context())
		if err != nil || len(m) != members {
			t.Fatalf("%d members, %v; want %d", len(m), err, members)
		}
		for _, m := range m {
			if m.State != synced || m.Share != 1 {
				t.Errorf("member %+v does not serve", m)
			}
			own, err := c.OpenMember(t.Context(), m.Node)
			if err != nil {
				t.Fatal(err)
			}
			// A member applies commits of others with a short delay.
			if err := c.Servers.Await(ctx, func(ctx context.Context) error {
				n, err := own.Scan(ctx, "", "", 1<<20, nil, nil)
				if err == nil && int64(n) != rows {
					err = fmt.Errorf("%s has %d rows; want %d", m.Node, n, rows)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if err := own.Close(); err != nil {
				t.Error(err)
			}
		}
		if n, err := c.Count(t.Context()); err != nil || n != rows {
			t.Errorf("count %d, %v; want %d", n, err, rows)
		}
	}
	write()
	check(3)
	change, err := c.Join(t.Context(), nodes[3])
	if err != nil {
		t.Fatal(err)
	}
	if change.Accepted <= 0 || change.Accepted > change.Complete {
		t.Errorf("accepted after %v, complete after %v", change.Accepted, change.Complete)
	}
	write()
	check(4)
	if change, err = c.Leave(t.Context(), nodes[3], database.Graceful); err != nil {
		t.Fatal(err)
	}
	check(3)
	for _, manner := range []database.Manner{database.Graceful, database.Abrupt} {
		if err := c.Halt(t.Context(), nodes[2], manner); err != nil {
			t.Fatal(err)
		}
		write()
		if err := c.Revive(t.Context(), nodes[2]); err != nil {
			t.Fatal(err)
		}
		check(3)
	}
	if change, err = c.Leave(t.Context(), nodes[1], database.Abrupt); err != nil {
		t.Fatal(err)
	}
	check(2)
	if _, err := c.Leave(t.Context(), nodes[0], database.Abrupt); err == nil {
		t.Error("one of two was killed")
	}
	if err := c.Err(); err != nil {
		t.Error(err)
	}
	if err := c.Clear(t.Context()); err != nil {
		t.Error(err)
	}
	if n, err := c.Count(t.Context()); err != nil || n != 0 {
		t.Errorf("count %d, %v after clear", n, err)
	}
}

// Every member is halted, in the worst order for the first ones to return.
func TestWholeClusterHalted(t *testing.T) {
	for _, manner := range []database.Manner{database.Graceful, database.Abrupt} {
		t.Run(manner.String(), func(t *testing.T) {
			nodes := testhost.Loopback(t, 2)
			g, c := startCluster(t, nodes, nil)
			client := dbtest.Open(t, g, c.Properties())
			if err := client.Insert(t.Context(), "", "user1", fields("a")); err != nil {
				t.Fatal(err)
			}
			if err := c.Halt(t.Context(), nodes[1], database.Graceful); err != nil {
				t.Fatal(err)
			}
			if err := c.Servers.Await(t.Context(), func(ctx context.Context) error {
				err := client.Insert(ctx, "", "user2", fields("b"))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if err := c.Halt(t.Context(), nodes[0], manner); err != nil {
				t.Fatal(err)
			}
			if err := c.Revive(t.Context(), nodes[1]); !errors.Is(err, mysql.ErrBehind) || advice.Of(err) == "" {
				t.Fatalf("revived from an outdated member: %v", err)
			}
			for _, n := range nodes {
				if err := c.Revive(t.Context(), n); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Ready(t.Context()); err != nil {
				t.Error(err)
			}
			if n, err := c.Count(t.Context()); err != nil || n != 2 {
				t.Errorf("count %d, %v; want 2", n, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	nodes := testhost.Loopback(t, 2)
	_, c := startCluster(t, nodes[:1], nil)
	for what, test := range map[string]struct {
		do   func() error
		want error
	}{
		"join of a member":         {func() error { _, err := c.Join(t.Context(), nodes[0]); return err }, database.ErrMember},
		"leave of the last":        {func() error { _, err := c.Leave(t.Context(), nodes[0], database.Graceful); return err }, database.ErrFixed},
		"leave, non-member":        {func() error { _, err := c.Leave(t.Context(), nodes[1], database.Graceful); return err }, database.ErrNotMember},
		"halt, non-member":         {func() error { return c.Halt(t.Context(), nodes[1], database.Abrupt) }, database.ErrNotMember},
		"revival of a running one": {func() error { return c.Revive(t.Context(), nodes[0]) }, mysql.ErrRuns},
		"join while another runs": {func() error {
			_, release, err := c.Hold(nodes[0].Name())
			if err != nil {
				return err
			}
			defer release()
			_, err = c.Join(t.Context(), nodes[1])
			return err
		}, database.ErrBusy},
	} {
		if err := test.do(); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", what, err, test.want)
		}
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPortTaken(t *testing.T) {
	testkit.Need(t, testkit.Installed(Recipe))
	nodes := testhost.Loopback(t, 2)
	l, err := net.Listen("tcp4", nodes[1].Addr()+":4567")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g := New()
	in, err := g.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Start(t.Context(), database.Env{Nodes: nodes, Control: nodes[0], Installation: in})
	if !errors.Is(err, daemon.ErrPortTaken) || !strings.Contains(err.Error(), "n2") {
		t.Errorf("error %v does not name the node whose port is in use", err)
	}
	if left, _ := filepath.Glob("/proc/[0-9]*/cwd"); true {
		for _, p := range left {
			if cwd, _ := os.Readlink(p); strings.HasPrefix(cwd, nodes[0].Dir()) {
				t.Errorf("a process is still running in %s", cwd)
			}
		}
	}
}

// Two of three members are killed: the third continues when one of them is revived.
func TestMajorityLost(t *testing.T) {
	nodes := testhost.Loopback(t, 3)
	g, c := startCluster(t, nodes, nil)
	if err := dbtest.Open(t, g, c.Properties()).Insert(t.Context(), "", "user1", fields("a")); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[1:] {
		if err := c.Halt(t.Context(), n, database.Abrupt); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes[1:] {
		if err := c.Revive(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if n, err := c.Count(t.Context()); err != nil || n != 1 {
		t.Errorf("count %d, %v; want 1", n, err)
	}
}

// Two of three members write while the third is frozen, and are killed: the remaining one lacks acknowledged writes and
// must not lead.
func TestMinorityIsBehind(t *testing.T) {
	nodes := testhost.Loopback(t, 3)
	g, c := startCluster(t, nodes, nil)
	p := c.Properties()
	p[mysql.PropHosts], p[mysql.PropMember] = c.On("n2").Addr(), mysql.First
	client := dbtest.Open(t, g, p)
	if err := client.Insert(t.Context(), "", "user1", fields("a")); err != nil {
		t.Fatal(err)
	}
	frozen := c.On("n1").Server()
	if err := syscall.Kill(frozen.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := c.Servers.Await(t.Context(), func(ctx context.Context) error { return c.CheckAgreement(ctx, c.All()[1:]) }); err != nil {
		t.Fatal(err)
	}
	if err := client.Insert(t.Context(), "", "user2", fields("b")); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[1:] {
		if err := c.Halt(t.Context(), n, database.Abrupt); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(frozen.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes[1:] {
		if err := c.Revive(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	for _, s := range c.Running() {
		if n, err := s.Count(t.Context(), waits); err != nil || n != 2 {
			t.Errorf("%s counts %d, %v; want 2", s.Host.Name(), n, err)
		}
	}
}
