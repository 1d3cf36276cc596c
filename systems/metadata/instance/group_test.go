package instance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/systems/consensus"
	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/instance"
	"skerry/systems/metadata/protocol"
	"skerry/test/testkit"
)

const patience = 60 * time.Second

// run serves until stop is called. The server is ready when run returns.
func run(t *testing.T, o instance.Options) (addr string, stop func()) {
	t.Helper()
	ready := make(chan net.Addr, 1)
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	o.Log = slog.New(slog.DiscardHandler)
	o.Ready = func(a net.Addr, _ protocol.LogRecovery) error {
		ready <- a
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- instance.Run(ctx, o) }()
	select {
	case a := <-ready:
		addr = a.String()
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return addr, stop
}

func one(t *testing.T, c *client.Client, line string) metadata.Result {
	t.Helper()
	command, err := metadata.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for {
		r := c.DoOne(t.Context(), command)
		if !errors.Is(r.Err, metadata.ErrUnavailable) || time.Now().After(deadline) {
			return r
		}
	}
}

// TestGroup stops a replica; a client continues with the others.
func TestGroup(t *testing.T) {
	var members []string
	for i := range 3 {
		members = append(members, fmt.Sprintf("m%d=%s", i+1, testkit.Address(t)))
	}
	var addrs []string
	var stops []func()
	dir := t.TempDir()
	for i := range members {
		name := fmt.Sprintf("m%d", i+1)
		addr, stop := run(t, instance.Options{Dir: filepath.Join(dir, name),
			Group: &instance.ReplicaGroup{Cluster: "tree", Name: name, Members: members}})
		addrs, stops = append(addrs, addr), append(stops, stop)
	}
	c := client.New(strings.Join(addrs, ","))
	defer c.Close()
	if r := one(t, c, "mkdir /a"); r.Err != nil {
		t.Fatal(r.Err)
	}
	status, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Group == nil || status.Group.Self.Name != "m1" || len(status.Group.Members) != 3 || status.Tree.Directories != 2 {
		t.Errorf("status %+v", status)
	}
	stops[0]()
	if r := one(t, c, "mkdir /a/b"); r.Err != nil {
		t.Fatal(r.Err)
	}
	other := client.New(addrs[2])
	defer other.Close()
	if r := one(t, other, "ls /a"); r.Err != nil || len(r.Entries) != 1 {
		t.Errorf("listed %+v", r)
	}
	if status, err = c.Status(t.Context()); err != nil || status.Group.Self.Name != "m2" {
		t.Errorf("%v, status %+v", err, status)
	}
}

func TestDirectoryLayouts(t *testing.T) {
	alone, replica := filepath.Join(t.TempDir(), "alone"), filepath.Join(t.TempDir(), "replica")
	group := &instance.ReplicaGroup{Cluster: "tree", Name: "a", Members: []string{"a=" + testkit.Address(t)}}
	_, stop := run(t, instance.Options{Dir: alone})
	stop()
	_, stop = run(t, instance.Options{Dir: replica, Group: group})
	stop()
	for dir, g := range map[string]*instance.ReplicaGroup{alone: group, replica: nil} {
		o := instance.Options{Listen: "127.0.0.1:0", Dir: dir, Group: g, Log: slog.New(slog.DiscardHandler)}
		if err := instance.Run(t.Context(), o); !errors.Is(err, instance.ErrLayout) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	for _, members := range [][]string{{"a"}, {"=x"}, {"b=127.0.0.1:1"}, {"a=127.0.0.1:1", "a=127.0.0.1:2"},
		{"a=127.0.0.1:1", "b=127.0.0.1:1"}} {
		o := instance.Options{Listen: "127.0.0.1:0", Dir: t.TempDir(),
			Group: &instance.ReplicaGroup{Cluster: "tree", Name: "a", Members: members}, Log: slog.New(slog.DiscardHandler)}
		if err := instance.Run(t.Context(), o); !errors.Is(err, instance.ErrGroup) {
			t.Errorf("%v: %v", members, err)
		}
	}
}

// TestShare sends requests to either of two servers that share a tree.
func TestShare(t *testing.T) {
	addrs := []string{testkit.Address(t), testkit.Address(t)}
	servers := []string{"g1=" + addrs[0], "g2=" + addrs[1]}
	for i := range servers {
		run(t, instance.Options{Listen: addrs[i], Dir: filepath.Join(t.TempDir(), "data"),
			Share: &instance.Share{Name: fmt.Sprintf("g%d", i+1), Root: "g1", Servers: servers}})
	}
	first, second := client.New(addrs[0]), client.New(addrs[1])
	defer first.Close()
	defer second.Close()
	for _, line := range []string{"mkdir /a", "delegate /a g2", "mkdir /a/b", "write /a/b/f text", "mkdir /c"} {
		if r := one(t, first, line); r.Err != nil {
			t.Fatalf("%s: %v", line, r.Err)
		}
	}
	near, err := cluster.Connect(t.Context(), addrs[1])
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	read := metadata.Command{Op: metadata.Read, Path: "/a/b/f"}
	for _, n := range []metadata.Service{first, second, near} {
		if r := n.Do(t.Context(), []metadata.Command{read}); string(r[0].Data) != "text" {
			t.Errorf("read %+v", r)
		}
	}
	if r := one(t, second, "ls /"); r.Err != nil || len(r.Entries) != 2 {
		t.Errorf("listed %+v", r)
	}
	if r := one(t, second, "rmdir /a/b"); !errors.Is(r.Err, metadata.ErrNotEmpty) || r.Err.Error() != "/a/b: directory is not empty" {
		t.Errorf("removed: %v", r.Err)
	}
	status, err := first.Status(t.Context())
	if err != nil || status.Name != "g1" || status.Servers["g2"] != addrs[1] || len(status.Subtrees) != 1 {
		t.Errorf("%v, status %+v", err, status)
	}
	alone, _ := run(t, instance.Options{Dir: filepath.Join(t.TempDir(), "alone")})
	single, err := cluster.Connect(t.Context(), alone)
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	if r := single.Do(t.Context(), []metadata.Command{{Op: metadata.Mkdir, Path: "/x"}}); r[0].Err != nil {
		t.Error(r[0].Err)
	}
	for _, share := range []instance.Share{{Name: "a", Root: "a"}, {Name: "a", Root: "b", Servers: []string{"a=x"}},
		{Name: "a", Root: "a", Servers: []string{"a=x", "a=y"}}, {Name: "a", Root: "a", Servers: []string{"a=x", "b:=y"}}} {
		o := instance.Options{Listen: "127.0.0.1:0", Dir: t.TempDir(), Share: &share, Log: slog.New(slog.DiscardHandler)}
		if err := instance.Run(t.Context(), o); !errors.Is(err, instance.ErrShare) {
			t.Errorf("%+v: %v", share, err)
		}
	}
}

// begin starts a server, and sends its result on ended.
func begin(t *testing.T, o instance.Options) (addr string, ended <-chan error) {
	t.Helper()
	ready, end := make(chan net.Addr, 1), make(chan error, 1)
	o.Listen, o.Log = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	o.Ready = func(a net.Addr, _ protocol.LogRecovery) error {
		ready <- a
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		end <- instance.Run(ctx, o)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	select {
	case a := <-ready:
		return a.String(), end
	case err := <-end:
		t.Fatal(err)
	}
	return "", nil
}

// TestMembers adds an empty third replica to a group of two, and removes the leader, whose process then exits.
func TestMembers(t *testing.T) {
	dir, peers := t.TempDir(), []string{testkit.Address(t), testkit.Address(t), testkit.Address(t)}
	member := func(i int) string { return fmt.Sprintf("m%d=%s", i+1, peers[i]) }
	clients, ends := make([]*client.Client, 3), make([]<-chan error, 3)
	for i := range 3 {
		name := fmt.Sprintf("m%d", i+1)
		g := instance.ReplicaGroup{Cluster: "tree", Name: name, Members: []string{member(0), member(1)}}
		if i == 2 {
			g.Join, g.Members = true, []string{member(2)}
		}
		var addr string
		addr, ends[i] = begin(t, instance.Options{Dir: filepath.Join(dir, name), Group: &g})
		clients[i] = client.New(addr)
		defer clients[i].Close()
	}
	if r := one(t, clients[0], "mkdir /a"); r.Err != nil {
		t.Fatal(r.Err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 { // repeating is not an error
		if err := clients[1].AddMember(ctx, "m3", peers[2]); err != nil {
			t.Fatal(err)
		}
	}
	if err := clients[0].AwaitVote(ctx, "m3"); err != nil {
		t.Fatal(err)
	}
	if err := clients[0].AddMember(ctx, "m3", "127.0.0.1:1"); !errors.Is(err, client.ErrRefused) {
		t.Errorf("another address for an existing replica: %v", err)
	}
	if err := clients[0].RemoveMember(ctx, "m4"); !errors.Is(err, client.ErrNoMember) {
		t.Errorf("removing an unknown replica: %v", err)
	}
	if r := one(t, clients[2], "stat /a"); r.Err != nil {
		t.Fatal(r.Err)
	}
	s, err := clients[2].Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lead := 0
	for i := range peers {
		if s.Group.Leader == consensus.MemberID(fmt.Sprintf("m%d", i+1)) {
			lead = i
		}
	}
	other := (lead + 1) % 3
	for err = errors.New("no attempt yet"); err != nil && ctx.Err() == nil; { // the answer may be lost with the leader
		if err = clients[other].RemoveMember(ctx, fmt.Sprintf("m%d", lead+1)); errors.Is(err, client.ErrNoMember) {
			err = nil
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ends[lead]:
		if !errors.Is(err, consensus.ErrRemoved) {
			t.Errorf("the removed replica exited with %v", err)
		}
	case <-time.After(patience):
		t.Error("the removed replica did not stop")
	}
	if r := one(t, clients[other], "mkdir /a/b"); r.Err != nil {
		t.Error(r.Err)
	}
	if s, err = clients[other].Status(ctx); err != nil || len(s.Group.Members) != 2 {
		t.Errorf("%v, the members are %+v", err, s.Group.Members)
	}
}
