package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/instance"
)

// serveVariable has the test's program be a server: NAME DIR SERVER...
const serveVariable = "SKERRY_METADATA_TEST_SERVER"

func TestMain(m *testing.M) {
	words := strings.Fields(os.Getenv(serveVariable))
	if len(words) == 0 {
		os.Exit(m.Run())
	}
	share := &instance.Share{Name: words[0], Root: "g1", Servers: words[2:]}
	o := instance.Options{Dir: words[1], Share: share, Log: slog.New(slog.DiscardHandler)}
	for _, s := range share.Servers {
		if name, addr, _ := strings.Cut(s, "="); name == share.Name {
			o.Listen = addr
		}
	}
	if err := instance.Run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is a server that is killed with kill -9.
type process struct {
	t    *testing.T
	text string
	cmd  *exec.Cmd
}

func (p *process) start() {
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serveVariable+"="+p.text)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Error(err)
	}
}

func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Error(err)
	}
	_ = p.cmd.Wait() // it was killed
}

// TestKill moves files and a directory between two servers that are killed and started: none
// is lost, and none is there twice. SKERRY_METADATA_KILLS is how often; 3.
func TestKill(t *testing.T) {
	kills := 3
	if n, err := strconv.Atoi(os.Getenv("SKERRY_METADATA_KILLS")); err == nil {
		kills = n
	}
	addrs, all := processes(t, 2)
	c := client.New(addrs[0])
	defer c.Close()
	for _, line := range []string{"mkdir -p /a", "mkdir -p /b", "stat /b", "delegate /b g2", "mkdir -p /a/d/x", "write /a/0 0", "write /a/1 1", "write /a/2 2"} {
		insist(t, c, line)
	}
	ctx, end := context.WithCancel(t.Context())
	var movers sync.WaitGroup
	for i, name := range []string{"0", "1", "2", "d"} {
		own := client.New(addrs[i%2])
		movers.Go(func() {
			defer own.Close()
			for n := 0; ctx.Err() == nil; n++ {
				from, to := "/a/"+name, "/b/"+name
				if n%2 == 1 {
					from, to = to, from
				}
				// One that was sent is waited for: it must not be done between the two listings.
				own.DoOne(t.Context(), metadata.Command{Op: metadata.Move, Path: from, To: to, MaxDepth: -1})
			}
		})
	}
	for n := range kills {
		time.Sleep(rand.N(400 * time.Millisecond)) // kills come at any moment
		all[n%2].kill()
		all[n%2].start()
		insist(t, c, "stat /a")
	}
	end()
	movers.Wait()
	var names []string
	for _, dir := range []string{"/a", "/b"} {
		for _, e := range insist(t, c, "ls "+dir).Entries {
			names = append(names, e.Name)
			if e.Name == "d" {
				insist(t, c, "stat "+dir+"/d/x")
			} else if r := insist(t, c, "read "+dir+"/"+e.Name); string(r.Data) != e.Name {
				t.Errorf("%s/%s has %q", dir, e.Name, r.Data)
			}
		}
	}
	if slices.Sort(names); strings.Join(names, " ") != "0 1 2 d" {
		t.Errorf("there are %v", names)
	}
}

// insist asks until a server is there to answer.
func insist(t *testing.T, c *client.Client, line string) metadata.Result {
	t.Helper()
	r, err := insisted(t.Context(), c, line)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// insisted is insist for goroutines beside the test's own.
func insisted(ctx context.Context, c *client.Client, line string) (metadata.Result, error) {
	command, err := metadata.Parse(line)
	if err != nil {
		return metadata.Result{}, err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		r := c.DoOne(ctx, command)
		switch {
		case r.Err == nil || errors.Is(r.Err, metadata.ErrExists):
			return r, nil
		case !errors.Is(r.Err, metadata.ErrUnavailable) || time.Now().After(deadline):
			return r, fmt.Errorf("%s: %w", line, r.Err)
		}
	}
}

// TestPartsSurviveKill kills servers with kill -9 while a directory is parted over them, and while its
// parts are merged, with clients that fill it: what was acknowledged is there once, with its
// content, and whoever was left in doubt is told when he asks again. SKERRY_METADATA_KILLS is how
// often each of the two is interrupted; 2.
func TestPartsSurviveKill(t *testing.T) {
	kills := 2
	if n, err := strconv.Atoi(os.Getenv("SKERRY_METADATA_KILLS")); err == nil {
		kills = n
	}
	addrs, all := processes(t, 3)
	c := client.New(addrs[0])
	defer c.Close()
	for _, line := range []string{"stat /", "mkdir /hot"} {
		insist(t, c, line)
	}
	ctx, end := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	made := make([]int, 3)
	var doubts atomic.Int64
	for w := range made {
		// A client of several addresses, of which each has the whole tree.
		own := client.New(strings.Join(slices.Concat(addrs[w:], addrs[:w]), ","))
		writers.Go(func() {
			defer own.Close()
			for ; ctx.Err() == nil; made[w]++ {
				name := fmt.Sprintf("%d-%05d", w, made[w])
				doubts.Add(int64(settle(t, own, metadata.Command{
					Op: metadata.Write, Exclusive: true, Path: "/hot/" + name, Data: []byte(name), Mode: metadata.DefaultFileMode, Identity: "test/" + name + ".0",
				})))
			}
		})
	}
	interrupted := map[string]int{}
	for owner, n := "g1,g2,g3", 0; interrupted["g1,g2,g3"] < kills || interrupted["g1"] < kills; n++ {
		began := time.Now()
		over := make(chan error)
		go func() {
			_, err := insisted(t.Context(), c, "delegate /hot "+owner)
			over <- err
		}()
		var failed error
		select { // kills come at any moment
		case <-time.After(rand.N(200 * time.Millisecond)):
			interrupted[owner]++
			all[n%3].kill()
			all[n%3].start()
			failed = <-over
		case failed = <-over:
		}
		if failed != nil {
			t.Errorf("%v, after %v", failed, time.Since(began))
			break
		}
		if owner = "g1"; n%2 == 1 {
			owner = "g1,g2,g3"
		}
	}
	end()
	writers.Wait()
	t.Logf("%v files, %d were asked for again, %v interrupted", made, doubts.Load(), interrupted)
	var want []string
	for w, n := range made {
		for i := range n {
			want = append(want, fmt.Sprintf("%d-%05d", w, i))
		}
	}
	if doubts.Load() == 0 {
		t.Error("no client was in doubt")
	}
	for _, owner := range []string{"g1,g2,g3", "g2"} {
		insist(t, c, "delegate /hot "+owner)
		holdsOnce(t, addrs, want)
	}
}

// settle has a change made however often it must be asked for, and tells how often it was in doubt.
func settle(t *testing.T, c *client.Client, command metadata.Command) (doubts int) {
	seen := c.Seen() // how far the logs were before it was asked for first
	deadline := time.Now().Add(patience)
	for ; ; doubts++ {
		ctx := metadata.WithRequest(context.Background(), metadata.Request{Again: doubts > 0, Seen: seen})
		switch r := c.Do(ctx, []metadata.Command{command})[0]; {
		case r.Err == nil:
			return doubts
		case !errors.Is(r.Err, metadata.ErrUnavailable) || time.Now().After(deadline):
			t.Errorf("%s, asked for %d times before: %v", command.Path, doubts, r.Err)
			return doubts
		}
	}
}

// holdsOnce checks that /hot has files, each with its name for content, in one place.
func holdsOnce(t *testing.T, addrs, want []string) {
	t.Helper()
	r, err := cluster.Connect(t.Context(), addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := pagesOf(t, r, "ls /hot", 100); !slices.Equal(got, want) {
		t.Errorf("%d entries, not %d", len(got), len(want))
	}
	for _, name := range want {
		if got := r.Do(t.Context(), []metadata.Command{{Op: metadata.Read, Path: "/hot/" + name}})[0]; string(got.Data) != name {
			t.Errorf("%s: %q, %v", name, got.Data, got.Err)
		}
	}
	// A server remembers a transaction whose router has died until its lease is over.
	there, deadline := kept(t, r.Router, addrs), time.Now().Add(patience)
	for there != len(want) && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
		there = kept(t, r.Router, addrs)
	}
	if there != len(want) {
		t.Errorf("the servers have %d files of %d", there, len(want))
	}
}

// kept is how many files the servers have in their own trees, once what dead routers left is swept.
func kept(t *testing.T, r *cluster.Router, addrs []string) (files int) {
	t.Helper()
	for i, addr := range addrs {
		if _, err := r.Sweep(t.Context(), fmt.Sprintf("g%d", i+1), 0); err != nil {
			t.Error(err)
		}
		own := client.NewOwn(addr)
		files += len(pagesOf(t, own, "find -type f /", 1000))
		own.Close()
	}
	return files
}
