package rebalance_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/rebalance"
	"skerry/systems/metadata/store"
)

// disk is a changelog.Log that keeps nothing.
type disk struct {
	mu    sync.Mutex
	state *store.State
}

func (d *disk) Append(_ context.Context, record []byte) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state.Apply(0, bytes.Clone(record)), nil
}

func (d *disk) Close() error { return nil }

// machine is a server with a load meter.
type machine struct {
	own    *store.Store
	meter  *rebalance.Meter
	copied chan<- struct{} // if set, notified of the first incoming copy
	resume <-chan struct{} // the copy then waits for it
	once   sync.Once
}

func (m *machine) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	m.meter.Count(commands)
	if m.copied != nil && metadata.Under(commands[0].Path, metadata.Incoming) && commands[0].Op.Changes() {
		m.once.Do(func() {
			close(m.copied)
			<-m.resume
		})
	}
	return m.own.Do(ctx, commands)
}

// world has the servers g1, which has the root, g2 and g3, and a manual clock.
type world struct {
	t        *testing.T
	router   *cluster.Router
	machines map[string]*machine
	at       atomic.Int64 // ns
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, machines: make(map[string]*machine)}
	s := cluster.Servers{Root: "g1", Service: make(map[string]metadata.Service), Lease: time.Minute}
	for _, name := range []string{"g1", "g2", "g3"} {
		state := store.NewState()
		m := &machine{own: store.New(state, &disk{state: state}), meter: rebalance.NewExactMeter(w.now, 1)}
		m.own.Patience = time.Minute
		w.machines[name], s.Service[name] = m, m
	}
	var err error
	if w.router, err = cluster.NewRouter(s); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) now() time.Time { return time.Unix(0, w.at.Load()) }

func (w *world) pass(d time.Duration) { w.at.Add(int64(d)) }

// loads returns the view of the balancers.
func (w *world) loads(context.Context) map[string]rebalance.ServerLoad {
	all := make(map[string]rebalance.ServerLoad)
	for name, m := range w.machines {
		all[name] = rebalance.ServerLoad{Load: m.meter.Load(), Subtrees: m.own.Tree().VirtualOwners()}
	}
	return all
}

func (w *world) balancer(name string, p rebalance.Policy) *rebalance.Balancer {
	return rebalance.NewBalancer(rebalance.Options{
		Policy: p, Self: name, Root: "g1", Loads: w.loads, Whole: w.router, Own: w.machines[name].own,
		Log: slog.New(slog.DiscardHandler), Now: w.now,
	})
}

// run runs a command on the shared tree.
func (w *world) run(line string) metadata.Result {
	w.t.Helper()
	c, err := metadata.Parse(line)
	if err != nil {
		w.t.Fatal(err)
	}
	r := w.router.Do(w.t.Context(), []metadata.Command{c})[0]
	if r.Err != nil {
		w.t.Errorf("%s: %v", line, r.Err)
	}
	return r
}

// users generates 380 operations/s on directories of three users for a time: 50 in each of ann's four, 90 in one
// of ben's and one of cem's.
func (w *world) users(d time.Duration) {
	for end := w.now().Add(d); w.now().Before(end); w.pass(100 * time.Millisecond) {
		for range 5 {
			for i := range 4 {
				w.run(fmt.Sprintf("ls /home/ann/%d", i))
			}
		}
		for _, user := range []string{"ben", "cem"} {
			for range 9 {
				w.run("ls /home/" + user + "/0")
			}
		}
	}
}

// policy returns a policy under which the load of users is worth a move.
func policy(p rebalance.Policy) rebalance.Policy {
	p.Floor = 100
	return p.WithDefaults()
}

func (w *world) make() {
	for _, user := range []string{"ann", "ben", "cem"} {
		for i := range 4 {
			w.run(fmt.Sprintf("mkdir -p /home/%s/%d", user, i))
			for n := range 5 {
				w.run(fmt.Sprintf("write /home/%s/%d/f%d '%s has %d'", user, i, n, user, n))
			}
		}
	}
}

// image formats the whole tree, one line per entry.
func (w *world) image() string {
	var b strings.Builder
	for _, e := range w.run("find /").Entries {
		if e.Kind == metadata.File {
			fmt.Fprintf(&b, "%s: %s\n", e.Name, w.run("read "+e.Name).Data)
		} else {
			fmt.Fprintf(&b, "%s/\n", e.Name)
		}
	}
	return b.String()
}

// subtrees returns the subtrees and their servers.
func (w *world) subtrees() []string {
	var list []string
	for _, m := range w.machines {
		for path, owner := range m.own.Tree().VirtualOwners() {
			server, _, _ := strings.Cut(owner, ":")
			list = append(list, path+" on "+server)
		}
	}
	slices.Sort(list)
	return list
}

// TestMoves loads one server. Its hot directory moves while a client uses it, and then the balancers rest.
func TestMoves(t *testing.T) {
	w := newWorld(t)
	w.make()
	before := w.image()
	p := policy(rebalance.Policy{Stay: 2 * time.Minute})
	balancers := make(map[string]*rebalance.Balancer)
	for name := range w.machines {
		balancers[name] = w.balancer(name, p)
	}
	round := func() {
		for _, name := range []string{"g1", "g2", "g3"} {
			balancers[name].RunRound(t.Context())
		}
	}
	copied, resume := make(chan struct{}), make(chan struct{})
	w.machines["g2"].copied, w.machines["g2"].resume = copied, resume
	for range p.Rounds - 1 {
		w.users(p.Interval)
		round()
		if got := w.subtrees(); len(got) != 0 {
			t.Fatalf("moved too early: %v", got)
		}
	}
	w.users(p.Interval)
	var client sync.WaitGroup
	client.Go(func() {
		defer close(resume)
		<-copied // the directory is moving
		for i := range 4 {
			if r := w.run(fmt.Sprintf("ls /home/ann/%d", i)); len(r.Entries) != 5 {
				t.Errorf("during the move: %+v", r.Entries)
			}
		}
		w.run("write /home/ben/0/f0 new") // changes elsewhere continue
		client.Go(func() { w.run("write /home/ann/0/f0 newer") })
	})
	round()
	client.Wait()
	if got := w.subtrees(); !slices.Equal(got, []string{"/home/ann on g2"}) {
		t.Fatalf("subtrees %v, %+v", got, balancers["g1"].Status())
	}
	want := strings.Replace(strings.Replace(before, "/home/ben/0/f0: ben has 0", "/home/ben/0/f0: new", 1),
		"/home/ann/0/f0: ann has 0", "/home/ann/0/f0: newer", 1)
	if got := w.image(); got != want {
		t.Errorf("the tree is\n%swant\n%s", got, want)
	}
	// One of ben's or cem's directories moves to g3, and one of ann's four leaves g2. Nothing else moves.
	last := time.Duration(0)
	for at := w.now(); w.now().Sub(at) < 6*p.Stay; {
		w.users(p.Interval)
		old := w.subtrees()
		round()
		if !slices.Equal(w.subtrees(), old) {
			last = w.now().Sub(at)
		}
	}
	if got := w.subtrees(); len(got) != 3 || last > 3*p.Stay {
		t.Errorf("the last move came after %s; subtrees %v", last, got)
	}
	view := rebalance.View{Servers: w.loads(t.Context())}
	for name, s := range view.Servers {
		if s.Load.Rate > p.Factor*view.Mean() {
			t.Errorf("%s has %.0f operations/s, of %.0f on average", name, s.Load.Rate, view.Mean())
		}
	}
	if got := w.image(); got != want {
		t.Errorf("the tree is\n%swant\n%s", got, want)
	}
}

// TestTooLarge has a directory with too many entries to move. Directories in it may move.
func TestTooLarge(t *testing.T) {
	w := newWorld(t)
	w.make()
	for i := range 30 {
		w.run(fmt.Sprintf("mkdir /home/ann/0/%d", i))
	}
	p := policy(rebalance.Policy{Entries: 40})
	b := w.balancer("g1", p)
	for range p.Rounds {
		w.users(p.Interval)
		b.RunRound(t.Context())
	}
	got := w.subtrees()
	if len(got) != 1 || got[0] == "/home/ann on g2" {
		t.Errorf("subtrees %v, %+v", got, b.Status())
	}
}

// TestConcurrentBalancers runs three balancers on the same view: the result is that of one.
func TestConcurrentBalancers(t *testing.T) {
	w := newWorld(t)
	w.make()
	before := w.image()
	p := policy(rebalance.Policy{Rounds: 1})
	w.users(p.Interval)
	seen := w.loads(t.Context())
	var all sync.WaitGroup
	for range 3 {
		b := rebalance.NewBalancer(rebalance.Options{
			Policy: p, Self: "g1", Root: "g1", Whole: w.router, Own: w.machines["g1"].own, Log: slog.New(slog.DiscardHandler), Now: w.now,
			Loads: func(context.Context) map[string]rebalance.ServerLoad { return seen },
		})
		all.Go(func() {
			b.RunRound(t.Context())
			if s := b.Status(); s.Moves+s.Refused != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
	all.Wait()
	if got := w.subtrees(); !slices.Equal(got, []string{"/home/ann on g2"}) {
		t.Errorf("subtrees %v", got)
	}
	if got := w.image(); got != before {
		t.Errorf("the tree is\n%swant\n%s", got, before)
	}
}

// TestRefused removes a directory before its move. The move fails, and the balancer rests.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.make()
	p := policy(rebalance.Policy{Rounds: 1})
	w.users(p.Interval)
	seen := w.loads(t.Context())
	w.run("rm -r /home/ann")
	before := w.image()
	b := rebalance.NewBalancer(rebalance.Options{
		Policy: p, Self: "g1", Root: "g1", Whole: w.router, Own: w.machines["g1"].own, Log: slog.New(slog.DiscardHandler), Now: w.now,
		Loads: func(context.Context) map[string]rebalance.ServerLoad { return seen },
	})
	for range 3 {
		b.RunRound(t.Context())
	}
	if s := b.Status(); s.Moves != 0 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
	if got := w.image(); got != before {
		t.Errorf("the tree is\n%swant\n%s", got, before)
	}
}

// TestFollows has a replica that does not lead. It moves nothing until it leads, and then starts counting rounds.
func TestFollows(t *testing.T) {
	w := newWorld(t)
	w.make()
	leads := false
	p := policy(rebalance.Policy{})
	b := rebalance.NewBalancer(rebalance.Options{
		Policy: p, Self: "g1", Root: "g1", Loads: w.loads, Whole: w.router, Own: w.machines["g1"].own,
		Log: slog.New(slog.DiscardHandler), Now: w.now,
		Leads: func() bool { return leads },
	})
	for range 2 * p.Rounds {
		w.users(p.Interval)
		b.RunRound(t.Context())
	}
	leads = true
	for i := range p.Rounds {
		if got := w.subtrees(); len(got) != 0 {
			t.Fatalf("in round %d: %v", i, got)
		}
		w.users(p.Interval)
		b.RunRound(t.Context())
	}
	if got := w.subtrees(); len(got) != 1 {
		t.Errorf("subtrees %v, %+v", got, b.Status())
	}
}
