package instance_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/instance"
	"skerry/test/testkit"
)

// TestHungLeader stops a group's leader with SIGSTOP. It still accepts connections from clients, which have no
// timeouts. The other replicas take over. Each client's changes succeed soon, including the one sent to the
// leader. No change is in doubt or made twice, and no acknowledged change is lost.
func TestHungLeader(t *testing.T) {
	t.Parallel()
	all := processes(t, 3)
	setup := client.New(all[0].addr)
	defer setup.Close()
	if r := one(t, setup, "mkdir /d"); r.Err != nil && !errors.Is(r.Err, metadata.ErrExists) {
		t.Fatal(r.Err)
	}
	const clients, before, after = 4, 5, 5
	hung := leader(t, all)
	addrs := hung.addr
	for _, p := range all {
		if p != hung {
			addrs += "," + p.addr
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var working sync.WaitGroup
	warm, stopped := make(chan struct{}, clients), make(chan struct{})
	made := make([][]string, clients)
	for w := range clients {
		working.Go(func() {
			c := client.New(addrs)
			defer c.Close()
			done := 0
			for n := 0; done < after && ctx.Err() == nil; n++ {
				path := fmt.Sprintf("/d/%d.%d", w, n)
				counts := n >= before
				if n == before {
					warm <- struct{}{}
				}
				select {
				case <-stopped:
				default:
					counts = false // may have been made before
				}
				r := c.DoOne(ctx, metadata.Command{Op: metadata.Mkdir, Path: path, Mode: 0o755})
				if r.Err != nil {
					t.Errorf("mkdir %s: %v", path, r.Err)
					continue
				}
				made[w] = append(made[w], path)
				if counts {
					done++
				}
			}
			if done < after {
				t.Errorf("client %d completed %d of %d changes", w, done, after)
			}
		})
	}
	for range clients {
		select {
		case <-warm:
		case <-ctx.Done():
			t.Fatal("the clients made no progress")
		}
	}
	hung.signal(t, syscall.SIGSTOP)
	close(stopped)
	began := time.Now()
	working.Wait()
	t.Logf("after the stop, %d clients completed %d changes each in %v", clients, after, time.Since(began))
	hung.signal(t, syscall.SIGCONT)
	checkListed(t, all, slices.Concat(made...))
}

// checkListed checks that every replica lists all acknowledged entries of /d.
func checkListed(t *testing.T, all []*process, acknowledged []string) {
	t.Helper()
	for _, p := range all {
		c := client.New(p.addr)
		listed := one(t, c, "ls -n 10000 /d")
		c.Close()
		there := make(map[string]bool)
		for _, e := range listed.Entries {
			there["/d/"+e.Name] = true
		}
		for _, path := range acknowledged {
			if !there[path] {
				t.Errorf("%s lacks the acknowledged entry %s", p.addr, path)
			}
		}
	}
}

// TestHungServer needs a server that hangs: the request is refused, and requests for other servers are answered
// meanwhile.
func TestHungServer(t *testing.T) {
	t.Parallel()
	silent := testkit.SilentServer(t)
	addr := testkit.Address(t)
	run(t, instance.Options{Listen: addr, Dir: filepath.Join(t.TempDir(), "data"), Share: &instance.Share{
		Name: "g1", Root: "g1", Servers: []string{"g1=" + addr, "g2=" + silent},
	}})
	c := client.New(addr)
	defer c.Close()
	own := client.NewOwn(addr)
	defer own.Close()
	for _, r := range own.Do(t.Context(), []metadata.Command{
		{Op: metadata.Mkdir, Path: "/far", Mode: 0o755}, {Op: metadata.Mkdir, Path: "/near", Mode: 0o755},
		{Op: metadata.Delegate, Path: "/far", Owner: metadata.Subtree{Server: "g2", ID: "x"}.Owner()},
	}) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	refused := make(chan error, 1)
	go func() { refused <- c.DoOne(ctx, metadata.Command{Op: metadata.Create, Path: "/far/x"}).Err }()
	if r := c.DoOne(ctx, metadata.Command{Op: metadata.Create, Path: "/near/x"}); r.Err != nil {
		t.Errorf("a request for another server: %v", r.Err)
	}
	if err := <-refused; !errors.Is(err, metadata.ErrUnavailable) || ctx.Err() != nil {
		t.Errorf("a request for the hung server: %v, %v", err, ctx.Err())
	}
}
