package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/client"
	"skerry/systems/metadata/cluster"
)

// TestPartsKilled kills servers with kill -9 while a directory is parted over them, and while its
// parts are merged, with clients that fill it: what was acknowledged is there once, with its
// content, and whoever was left in doubt is told when he asks again. SKERRY_METADATA_KILLS is how
// often each of the two is interrupted; 2.
func TestPartsKilled(t *testing.T) {
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
