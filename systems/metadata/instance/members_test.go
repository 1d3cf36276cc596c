package instance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"skerry/internal/testkit"
	"skerry/systems/consensus"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/instance"
)

// begin serves, and tells how it ended.
func begin(t *testing.T, o instance.Options) (addr string, ended <-chan error) {
	t.Helper()
	ready, end := make(chan net.Addr, 1), make(chan error, 1)
	o.Listen, o.Log = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	o.Ready = func(a net.Addr, _ changelog.Recovery) error {
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

// TestMembers has a group of two take in a third that started empty, and lets go of the one
// that leads, whose process ends by itself.
func TestMembers(t *testing.T) {
	dir, peers := t.TempDir(), []string{testkit.Address(t), testkit.Address(t), testkit.Address(t)}
	member := func(i int) string { return fmt.Sprintf("m%d=%s", i+1, peers[i]) }
	clients, ends := make([]*client.Client, 3), make([]<-chan error, 3)
	for i := range 3 {
		name := fmt.Sprintf("m%d", i+1)
		g := instance.Group{Cluster: "tree", Name: name, Members: []string{member(0), member(1)}}
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
	for range 2 { // to ask twice is no error
		if err := clients[1].AddMember(ctx, "m3", peers[2]); err != nil {
			t.Fatal(err)
		}
	}
	if err := clients[0].AwaitVote(ctx, "m3"); err != nil {
		t.Fatal(err)
	}
	if err := clients[0].AddMember(ctx, "m3", "127.0.0.1:1"); !errors.Is(err, client.ErrRefused) {
		t.Errorf("another address for a replica that is there: %v", err)
	}
	if err := clients[0].RemoveMember(ctx, "m4"); !errors.Is(err, client.ErrNoMember) {
		t.Errorf("a replica that is not there: %v", err)
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
	for err = errors.New("not asked"); err != nil && ctx.Err() == nil; { // the answer may be lost with the leader
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
			t.Errorf("the replica that was removed ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the replica that was removed goes on")
	}
	if r := one(t, clients[other], "mkdir /a/b"); r.Err != nil {
		t.Error(r.Err)
	}
	if s, err = clients[other].Status(ctx); err != nil || len(s.Group.Members) != 2 {
		t.Errorf("%v, the members are %+v", err, s.Group.Members)
	}
}

// TestKnown asks another server of those that share a tree when the first is lost.
func TestKnown(t *testing.T) {
	addrs := []string{testkit.Address(t), testkit.Address(t)}
	servers := []string{"g1=" + addrs[0], "g2=" + addrs[1]}
	stops := make([]func(), 2)
	for i := range servers {
		_, stops[i] = run(t, instance.Options{Listen: addrs[i], Dir: filepath.Join(t.TempDir(), "data"), Share: &instance.Share{Name: fmt.Sprintf("g%d", i+1), Root: "g1", Servers: servers}})
	}
	c, err := client.Discover(t.Context(), addrs[1])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r := one(t, c, "mkdir /a"); r.Err != nil {
		t.Fatal(r.Err)
	}
	stops[1]()
	if r := one(t, c, "mkdir /a/b"); r.Err != nil {
		t.Error(r.Err)
	}
}
