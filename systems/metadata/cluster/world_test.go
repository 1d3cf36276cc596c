package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/cluster"
	"skerry/systems/metadata/store"
)

// patience is the timeout of every operation on a busy machine.
const patience = 60 * time.Second

// disk is a changelog.Log in memory that survives the server.
type disk struct {
	mu      sync.Mutex
	machine *store.State
	records [][]byte
	image   []byte // of the state before the records
	before  uint64 // number of records in image
	dead    bool
}

func (d *disk) Append(_ context.Context, record []byte) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, changelog.ErrUnknown
	}
	d.records = append(d.records, bytes.Clone(record))
	return d.machine.Apply(d.before+uint64(len(d.records)), record), nil
}

func (d *disk) Close() error { return nil }

// machine is a server that can be killed; it loses everything that it did not append.
type machine struct {
	t     testing.TB
	disk  *disk
	mu    sync.Mutex
	own   *store.Store
	down  bool
	fault func(before bool, commands []metadata.Command) (lost bool)
}

func newMachine(t testing.TB) *machine {
	m := &machine{t: t, disk: &disk{machine: store.NewState()}}
	m.own = store.New(m.disk.machine, m.disk)
	return m
}

// restart simulates kill -9 and a start from the log, or every other time from a snapshot.
func (m *machine) restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.disk
	old.mu.Lock()
	defer old.mu.Unlock()
	old.dead = true
	next := &disk{machine: store.NewState(), image: old.image, before: old.before, records: slices.Clone(old.records)}
	if len(old.records)%2 == 0 {
		s, err := old.machine.Snapshot()
		if err != nil {
			m.t.Fatal(err)
		}
		var image bytes.Buffer
		if err := s.Write(&image); err != nil {
			m.t.Fatal(err)
		}
		s.Close()
		next.image, next.before, next.records = image.Bytes(), old.before+uint64(len(old.records)), nil
	}
	if next.image != nil {
		if err := next.machine.Restore(bytes.NewReader(next.image)); err != nil {
			m.t.Fatal(err)
		}
	}
	for i, r := range next.records {
		next.machine.Apply(next.before+uint64(i)+1, r)
	}
	m.disk, m.own, m.down = next, store.New(next.machine, next), false
}

func (m *machine) store() *store.Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own
}

func (m *machine) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	m.mu.Lock()
	own, down, fault := m.own, m.down, m.fault
	m.mu.Unlock()
	none := slices.Repeat([]metadata.Result{{Err: metadata.ErrUnavailable}}, len(commands))
	if down || ctx.Err() != nil || fault != nil && fault(true, commands) {
		return none
	}
	for i := range commands {
		if err := commands[i].Check(); err != nil {
			m.t.Errorf("%s: %v", commands[i], err)
		}
	}
	results := own.Do(ctx, commands)
	if m.store() != own {
		return none
	}
	if fault != nil && fault(false, commands) {
		return none
	}
	return results
}

// Transactions implements cluster.OwnService.
func (m *machine) Transactions() ([]metadata.Txn, <-chan struct{}) {
	return m.store().Transactions()
}

func (m *machine) set(down bool, fault func(before bool, commands []metadata.Command) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down, m.fault = down, fault
}

// world has the servers g1, which has the root, g2 and g3.
type world map[string]*machine

func newWorld(t testing.TB) world {
	w := make(world)
	for i := range 3 {
		w[fmt.Sprintf("g%d", i+1)] = newMachine(t)
	}
	return w
}

func (w world) router(t testing.TB, lease time.Duration) *cluster.Router {
	t.Helper()
	s := cluster.Servers{Root: "g1", Service: make(map[string]metadata.Service), Lease: lease}
	for name, m := range w {
		s.Service[name] = m
	}
	r, err := cluster.NewRouter(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// runKeepers runs every server's keeper until no transaction is left.
func (w world) runKeepers(t testing.TB, lease time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var keepers sync.WaitGroup
	r := w.router(t, lease)
	running, end := context.WithCancel(ctx)
	for name, m := range w {
		keepers.Go(func() { r.RunKeeper(running, name, m.store(), slog.New(slog.DiscardHandler)) })
	}
	for _, m := range w {
		for list, changed := m.store().Transactions(); len(list) > 0; list, changed = m.store().Transactions() {
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatalf("transactions still open: %+v", list)
			}
		}
	}
	end()
	keepers.Wait()
}

// sweep removes the leftovers of dead routers, and returns when all servers know that the routers are dead.
func (w world) sweep(t testing.TB, lease time.Duration) {
	t.Helper()
	r := w.router(t, lease)
	for name, m := range w {
		for deadline := time.Now().Add(patience); ; time.Sleep(lease) { // a lease has passed each time
			if _, err := r.Sweep(t.Context(), name, 0); err != nil {
				t.Fatal(err)
			}
			left := m.store().Tree().Do(metadata.Command{Op: metadata.List, Path: metadata.Incoming, Limit: 10})
			if len(left.Entries) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("leftovers in %s of %s: %+v", metadata.Incoming, name, left.Entries)
			}
		}
	}
}

// image formats the whole tree as a client sees it, one line per entry.
func (w world) image(t testing.TB) string {
	t.Helper()
	r := w.router(t, time.Second)
	var lines []string
	var walk func(dir string)
	walk = func(dir string) {
		listed := r.Do(t.Context(), []metadata.Command{{Op: metadata.List, Path: dir, Long: true, Limit: metadata.MaxLimit, MaxDepth: -1}})[0]
		if listed.Err != nil {
			t.Errorf("ls %s: %v", dir, listed.Err)
		}
		for _, e := range listed.Entries {
			p := metadata.Join(dir, e.Name)
			if e.Kind != metadata.File {
				at := r.Do(t.Context(), []metadata.Command{{Op: metadata.Stat, Path: p, MaxDepth: -1}})[0]
				if at.Err != nil {
					t.Errorf("stat %s: %v", p, at.Err)
					continue
				}
				lines = append(lines, fmt.Sprintf("%s/ %o", p, at.Entries[0].Mode))
				walk(p)
				continue
			}
			text := r.Do(t.Context(), []metadata.Command{{Op: metadata.Read, Path: p, MaxDepth: -1}})[0]
			lines = append(lines, fmt.Sprintf("%s %o %s %v", p, e.Mode, text.Data, text.Err))
		}
	}
	walk("/")
	return strings.Join(lines, "\n")
}

// orphans returns subtrees without a virtual directory, and virtual directories that lead nowhere.
func (w world) orphans() []string {
	counts := make(map[string]int)
	for name, m := range w {
		tree := m.store().Tree()
		for path, owner := range tree.VirtualOwners() {
			if !metadata.Under(path, metadata.Incoming) { // a copy in progress leads nowhere yet
				sub, _ := metadata.ParseSubtree(owner)
				for _, part := range sub.Parts() {
					counts[part.Owner()]++
				}
			}
		}
		for _, e := range tree.Do(metadata.Command{Op: metadata.List, Path: metadata.Subtrees, Limit: metadata.MaxLimit}).Entries {
			counts[name+":"+metadata.Subtrees+"/"+e.Name] += 10
		}
	}
	var list []string
	for owner, n := range counts {
		if n != 11 {
			list = append(list, fmt.Sprintf("%s: %d", owner, n))
		}
	}
	return list
}
