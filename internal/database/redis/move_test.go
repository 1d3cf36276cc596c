package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/test/testkit/testhost"
)

// counters writes increasing numbers from several workers, each with its own keys, until stopped. Every acknowledged
// write is recorded.
type counters struct {
	stop    chan struct{}
	end     func() // stops the workers and waits for them
	workers sync.WaitGroup
	mu      sync.Mutex
	last    map[string]int // last acknowledged number; -1 after a delete
	tried   map[string]int // largest number that may have been written
	failed  int
	why     map[string]int // failures by message
}

func count(t *testing.T, d *Redis, c *cluster, workers, keys int) *counters {
	n := &counters{stop: make(chan struct{}), last: make(map[string]int), tried: make(map[string]int), why: make(map[string]int)}
	for w := range workers {
		client, r := open(t, d, c.Properties(), PropScan, "false"), rand.New(rand.NewPCG(5, uint64(w)))
		n.workers.Go(func() {
			for i := 1; ; i++ {
				select {
				case <-n.stop:
					return
				default:
				}
				n.step(t.Context(), client, fmt.Sprintf("user%d-%d", w, r.IntN(keys)), i, r.IntN(10) == 0)
			}
		})
	}
	n.end = sync.OnceFunc(func() {
		close(n.stop)
		n.workers.Wait()
	})
	t.Cleanup(n.end) // before the clients are closed
	return n
}

func (n *counters) step(ctx context.Context, client load.Client, key string, i int, remove bool) {
	n.mu.Lock()
	n.tried[key] = i
	n.mu.Unlock()
	var err error
	if remove {
		if err = client.Delete(ctx, "t", key); errors.Is(err, load.ErrNotFound) {
			err = nil
		}
	} else {
		err = client.Update(ctx, "t", key, record(strconv.Itoa(i), "abcdefghijklmnopqrstuvwxyz"))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err != nil:
		n.failed++
		n.why[err.Error()]++
		if e := (*load.OpError)(nil); !errors.As(err, &e) || e.Outcome != load.NotDone {
			delete(n.last, key) // in doubt
		}
	case remove:
		n.last[key] = -1
	default:
		n.last[key] = i
	}
}

// check stops the workers and reads everything back.
func (n *counters) check(t *testing.T, client load.Client) {
	t.Helper()
	n.end()
	wrong := 0
	for key, want := range n.last {
		f, err := client.Read(t.Context(), "t", key, []string{"field0"}, nil)
		got := -1
		if err == nil {
			got, _ = strconv.Atoi(string(f[0].Value))
		} else if !errors.Is(err, load.ErrNotFound) {
			t.Fatal(err)
		}
		if got != want {
			if wrong++; wrong < 5 {
				t.Errorf("%s is %d, acknowledged was %d", key, got, want)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d records are wrong", wrong, len(n.last))
	}
	t.Logf("%d records, %d operations failed: %v", len(n.last), n.failed, n.why)
}

func awaitSettled(t *testing.T, c *cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.Servers.Await(ctx, c.checkSettled); err != nil {
		t.Fatal(err)
	}
}

// Moves end at random times, like those of a killed mover, while clients write and delete: the cluster always serves
// all records, and a later change repairs and completes the move.
func TestRepairAfterKilledMove(t *testing.T) {
	d := New()
	nodes := testhost.Loopback(t, 4)
	c := startCluster(t, d, nodes, nil)
	ctx, random := t.Context(), rand.New(rand.NewPCG(7, 8))
	work := count(t, d, c, 3, 400)
	killed := 0
	for round := range 6 {
		views, err := c.masterViews(ctx)
		if err != nil {
			t.Fatal(err)
		}
		owned, stays := make([][]int, len(views)), make([]bool, len(views))
		for i, v := range views {
			for _, r := range v.self.slots {
				for s := r.from; s <= r.to; s++ {
					owned[i] = append(owned[i], s)
				}
			}
			stays[i] = i != round%len(views)
		}
		moving, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(60_000))*time.Microsecond)
		if _, err := c.executePlan(moving, views, planTransfers(owned, stays)); err != nil {
			killed++
		}
		cancel()
		if err := c.repair(ctx); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		awaitSettled(t, c)
	}
	t.Logf("%d moves were killed", killed)
	if killed == 0 {
		t.Error("every move completed before it could be killed")
	}
	if _, err := c.Leave(ctx, nodes[1], database.Graceful); err != nil {
		t.Fatal(err)
	}
	work.check(t, open(t, d, c.Properties()))
	if work.failed > 0 {
		t.Errorf("%d operations failed", work.failed)
	}
	n, err := c.Count(ctx)
	if rows := int64(0); err != nil || n == rows {
		t.Errorf("count %d, %v", n, err)
	}
}

// The source, then a target, is killed in the middle of a move and revived: no acknowledged write is lost, if servers
// persist what they acknowledge.
func TestMoveFailsWhenNodeDies(t *testing.T) {
	d := New()
	nodes := testhost.Loopback(t, 4)
	c := startCluster(t, d, nodes, writeBeforeReply)
	ctx, random := t.Context(), rand.New(rand.NewPCG(9, 10))
	work := count(t, d, c, 3, 400)
	for round := range 4 {
		giver := round % 4
		victim := nodes[(giver+round/2)%4]
		var killing sync.WaitGroup
		killing.Go(func() {
			time.Sleep(time.Duration(random.IntN(40_000)) * time.Microsecond)
			if err := c.Halt(ctx, victim, database.Abrupt); err != nil {
				t.Error(err)
			}
		})
		_, err := c.Leave(ctx, nodes[giver], database.Graceful)
		killing.Wait()
		t.Logf("round %d, %s killed: %v", round, victim.Name(), err)
		if c.On(victim.Name()) != nil {
			if err := c.Revive(ctx, victim); err != nil {
				t.Fatal(err)
			}
		}
		if c.On(nodes[giver].Name()) == nil {
			_, err = c.Join(ctx, nodes[giver])
		} else {
			err = c.repair(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		awaitSettled(t, c)
	}
	work.check(t, open(t, d, c.Properties()))
}

// The target has copies that are not its own rows.
func TestCountWhileMoving(t *testing.T) {
	d := New()
	nodes := testhost.Loopback(t, 3)
	c := startCluster(t, d, nodes, nil)
	ctx := t.Context()
	client := open(t, d, c.Properties())
	for i := range 300 {
		if err := client.Insert(ctx, "t", fmt.Sprint("user", i), record("x")); err != nil {
			t.Fatal(err)
		}
	}
	views, err := c.masterViews(ctx)
	if err != nil {
		t.Fatal(err)
	}
	src, err := c.openSource(ctx, views[0])
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	target := views[1].openChanger(nodes[0])
	defer target.Close()
	s := &stream{source: src, to: views[1], target: target, bytes: new(atomic.Int64)}
	s.pace.setRoundTrip(0)
	var full []int // slots with records
	for i := range 300 {
		if n := slotOf(fmt.Sprint("user", i)); n < slots/3 && !slices.Contains(full, n) {
			full = append(full, n)
		}
	}
	q := newQueue(full)
	jobs, err := q.popJobs(ctx, 40)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.readBatch(ctx, q, jobs)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		if n, err := c.Count(ctx); err != nil || n != 300 {
			t.Errorf("%s: count %d, %v; want 300", when, n, err)
		}
	}
	if err := s.copyBatch(ctx, b); err != nil {
		t.Fatal(err)
	}
	check("copied")
	if _, err := s.handOverSlots(ctx, q, b.copies); err != nil {
		t.Fatal(err)
	}
	check("handed over")
	// A claim that is interrupted between its two halves.
	if err := setSlotState(ctx, target, []int{b.copies[0].slot, b.copies[1].slot, b.copies[2].slot}, "STABLE"); err != nil {
		t.Fatal(err)
	}
	if err := c.repair(ctx); err != nil {
		t.Fatal(err)
	}
	check("repaired")
	fresh := open(t, d, c.Properties())
	for i := range 300 {
		if _, err := fresh.Read(ctx, "t", fmt.Sprint("user", i), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.checkNoMoves(ctx); err != nil {
		t.Error(err)
	}
}

// A key that was removed from a migrating slot is answered with ASK, and is no error.
func TestRepairIgnoresDeletedKeys(t *testing.T) {
	d := New()
	nodes := testhost.Loopback(t, 3)
	c := startCluster(t, d, nodes, nil)
	ctx := t.Context()
	const key = "{user}1"
	slot := slotOf(key)
	owner := slot * 3 / slots
	from, to := c.On(nodes[owner].Name()), c.On(nodes[(owner+1)%3].Name())
	id, err := to.admin.ClusterMyID(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := setSlotState(ctx, from.admin, []int{slot}, "MIGRATING", id); err != nil {
		t.Fatal(err)
	}
	if err := from.admin.Dump(ctx, key).Err(); !isKeyGone(err) {
		t.Errorf("a missing key of a migrating slot: %v", err)
	}
	if err := setSlotState(ctx, from.admin, []int{slot}, "STABLE"); err != nil {
		t.Fatal(err)
	}
	if err := from.admin.Dump(ctx, key).Err(); !isKeyGone(err) {
		t.Errorf("a missing key: %v", err)
	}
	if isKeyGone(errors.New("IOERR")) {
		t.Error("every error counts as a missing key")
	}
}

// A slot whose records change constantly is finally moved by MIGRATE, and so is one with more keys than a script may
// handle.
func TestBusySlotMovesByMigrate(t *testing.T) {
	d := New()
	nodes := testhost.Loopback(t, 4)
	c := startCluster(t, d, nodes, nil)
	ctx := t.Context()
	client := open(t, d, c.Properties())
	tag := "{user}"
	for i := range 2 * maxScriptKeys {
		if err := client.Insert(ctx, "t", fmt.Sprint(tag, i), record(strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	work := count(t, d, c, 2, 1)
	owner := nodes[slotOf(tag)*4/slots]
	change, err := c.Leave(ctx, owner, database.Graceful)
	if err != nil {
		t.Fatal(err)
	}
	if change.Bytes < 2*maxScriptKeys*4 {
		t.Errorf("%d bytes were moved", change.Bytes)
	}
	client = open(t, d, c.Properties())
	work.check(t, client)
	for i := range 2 * maxScriptKeys {
		f, err := client.Read(ctx, "t", fmt.Sprint(tag, i), nil, nil)
		if err != nil || string(f[0].Value) != strconv.Itoa(i) {
			t.Fatalf("record %d: %v, %v", i, f, err)
		}
	}
}
