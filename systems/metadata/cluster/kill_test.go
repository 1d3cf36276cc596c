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

// serveVariable makes the test binary run a server: NAME DIR SERVER...
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

// process is a server process that is killed with kill -9.
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
	_ = p.cmd.Wait() // killed
}

// TestKill moves files and a directory between two servers that are killed and restarted: none is lost or
// duplicated. SKERRY_METADATA_KILLS is the number of kills; default 3.
func TestKill(t *testing.T) {
	kills := 3
	if n, err := strconv.Atoi(os.Getenv("SKERRY_METADATA_KILLS")); err == nil {
		kills = n
	}
	addrs, all := processes(t, 2)
	c := client.New(addrs[0])
	defer c.Close()
	for _, line := range []string{"mkdir -p /a", "mkdir -p /b", "stat /b", "delegate /b g2", "mkdir -p /a/d/x", "write /a/0 0",
		"write /a/1 1", "write /a/2 2"} {
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
				// Wait for the sent command: it must not run between the two listings.
				own.DoOne(t.Context(), metadata.Command{Op: metadata.Move, Path: from, To: to, MaxDepth: -1})
			}
		})
	}
	for n := range kills {
		time.Sleep(rand.N(400 * time.Millisecond)) // kills at random moments
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
		t.Errorf("got files %v", names)
	}
}

// insist repeats a command until a server answers.
func insist(t *testing.T, c *client.Client, line string) metadata.Result {
	t.Helper()
	r, err := insisted(t.Context(), c, line)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// insisted is insist for goroutines other than the test's own.
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

// TestPartsSurviveKill kills servers with kill -9 while a directory is split over them or merged, and while
// clients fill it. Every acknowledged entry exists once, with its content. A client in doubt gets the outcome when
// it repeats the change. SKERRY_METADATA_KILLS is the number of interruptions of each kind; default 2.
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
		// A client of several addresses, and each serves the whole tree.
		own := client.New(strings.Join(slices.Concat(addrs[w:], addrs[:w]), ","))
		writers.Go(func() {
			defer own.Close()
			for ; ctx.Err() == nil; made[w]++ {
				name := fmt.Sprintf("%d-%05d", w, made[w])
				doubts.Add(int64(settle(t, own, metadata.Command{
					Op: metadata.Write, Exclusive: true, Path: "/hot/" + name, Data: []byte(name), Mode: metadata.DefaultFileMode,
					Identity: "test/" + name + ".0",
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
		select { // kills at random moments
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
	t.Logf("%v files, %d changes repeated, %v interrupted", made, doubts.Load(), interrupted)
	var want []string
	for w, n := range made {
		for i := range n {
			want = append(want, fmt.Sprintf("%d-%05d", w, i))
		}
	}
	if doubts.Load() == 0 {
		t.Error("no client got a doubtful answer")
	}
	for _, owner := range []string{"g1,g2,g3", "g2"} {
		insist(t, c, "delegate /hot "+owner)
		holdsOnce(t, addrs, want)
	}
}

// settle repeats a change until its outcome is known, and returns the number of doubtful answers.
func settle(t *testing.T, c *client.Client, command metadata.Command) (doubts int) {
	seen := c.Seen() // log positions before the first request
	deadline := time.Now().Add(patience)
	for ; ; doubts++ {
		ctx := metadata.WithRequest(context.Background(), metadata.Request{Again: doubts > 0, Seen: seen})
		switch r := c.Do(ctx, []metadata.Command{command})[0]; {
		case r.Err == nil:
			return doubts
		case !errors.Is(r.Err, metadata.ErrUnavailable) || time.Now().After(deadline):
			t.Errorf("%s, repeated %d times before: %v", command.Path, doubts, r.Err)
			return doubts
		}
	}
}

// holdsOnce checks that each file of /hot exists once and contains its name.
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
	// A server remembers the transaction of a dead router until its lease expires.
	there, deadline := countFiles(t, r.Router, addrs), time.Now().Add(patience)
	for there != len(want) && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
		there = countFiles(t, r.Router, addrs)
	}
	if there != len(want) {
		t.Errorf("the servers have %d files, want %d", there, len(want))
	}
}

// countFiles returns the number of files in the servers' own trees after a sweep.
func countFiles(t *testing.T, r *cluster.Router, addrs []string) (files int) {
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
