package consensus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"skerry/systems/consensus"
)

// patience is the timeout of every wait, generous enough for a busy machine.
const patience = 60 * time.Second

// member is a node with a consumer that appends each applied value to a list and never loses it.
type member struct {
	t    *testing.T
	cfg  consensus.Config
	node *consensus.Node
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	applied uint64
	list    []string
	loads   int
	lags    bool // Save returns an old state, as a restored database would
	grown   chan struct{}
}

type state struct {
	Applied uint64
	List    []string
}

func (m *member) Save(_ context.Context, w io.Writer) (uint64, error) {
	m.mu.Lock()
	s := state{m.applied, slices.Clone(m.list)}
	if m.lags {
		s = state{Applied: 1}
	}
	m.mu.Unlock()
	return s.Applied, json.NewEncoder(w).Encode(s)
}

func (m *member) Load(_ context.Context, index uint64, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	var s state
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil || s.Applied != index {
		return fmt.Errorf("state at %d, not %d: %w", s.Applied, index, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied, m.list = s.Applied, s.List
	m.loads++
	m.grow()
	return nil
}

func (m *member) grow() {
	close(m.grown)
	m.grown = make(chan struct{})
}

// consume applies entries until the node ends.
func (m *member) consume(ctx context.Context, n *consensus.Node) {
	for {
		m.mu.Lock()
		from := m.applied + 1
		m.mu.Unlock()
		entries, err := n.Entries(ctx, from, 1<<16)
		var compacted *consensus.CompactedError
		if errors.As(err, &compacted) {
			if _, err := n.Fetch(ctx, 0); err != nil && ctx.Err() == nil {
				m.t.Logf("%s: %v", m.cfg.Self.Name, err)
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
			continue
		}
		if err != nil {
			return
		}
		m.mu.Lock()
		if m.applied+1 != from {
			m.mu.Unlock()
			continue // A state was loaded in the meantime.
		}
		for _, e := range entries {
			if e.Data != nil {
				m.list = append(m.list, string(e.Data))
			}
			m.applied = e.Index
		}
		m.grow()
		applied := m.applied
		m.mu.Unlock()
		n.Applied(applied)
	}
}

func (m *member) start() {
	m.t.Helper()
	n, err := consensus.Open(context.Background(), m.cfg)
	if err != nil {
		m.t.Fatal(err)
	}
	m.cfg.Listener = nil
	ctx, stop := context.WithCancel(context.Background())
	m.node, m.stop = n, stop
	m.mu.Lock()
	n.Applied(m.applied)
	m.mu.Unlock()
	if m.cfg.Self.Role != consensus.Witness {
		m.wg.Go(func() { m.consume(ctx, n) })
	}
}

func (m *member) close() {
	if m.node == nil {
		return
	}
	m.stop()
	m.node.Close()
	m.wg.Wait()
	m.node = nil
}

// waitFor waits until the member has applied want values.
func (m *member) waitFor(want int) []string {
	m.t.Helper()
	late := time.After(patience)
	for {
		m.mu.Lock()
		list, grown := slices.Clone(m.list), m.grown
		m.mu.Unlock()
		if len(list) >= want {
			return list
		}
		select {
		case <-grown:
		case <-late:
			m.t.Fatalf("%s has %d of %d values: %+v", m.cfg.Self.Name, len(list), want, m.node.Status())
		}
	}
}

type group struct {
	t       *testing.T
	members []*member
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newGroup starts a cluster on loopback; edit changes each member's configuration before it starts.
func newGroup(t *testing.T, roles []consensus.Role, edit func(*consensus.Config)) *group {
	t.Helper()
	g := &group{t: t}
	var all []consensus.Member
	var listeners []net.Listener
	for i, role := range roles {
		l := listen(t)
		listeners = append(listeners, l)
		all = append(all, consensus.Member{ID: uint64(i + 1), Name: fmt.Sprintf("m%d", i+1), Addr: l.Addr().String(), Site: fmt.Sprintf("site%d", i+1), Role: role})
	}
	for i, self := range all {
		g.add(self, listeners[i], func(cfg *consensus.Config) {
			cfg.Members = all
			if edit != nil {
				edit(cfg)
			}
		})
	}
	t.Cleanup(g.close)
	return g
}

func (g *group) add(self consensus.Member, l net.Listener, edit func(*consensus.Config)) *member {
	m := &member{t: g.t, grown: make(chan struct{})}
	m.cfg = consensus.Config{
		Cluster: "test", Self: self, Dir: filepath.Join(g.t.TempDir(), self.Name), Listener: l,
		Election: time.Second, Snapshotter: m,
		Log: slog.New(slog.NewTextHandler(testWriter{g.t}, &slog.HandlerOptions{Level: slog.LevelInfo})).With("m", self.Name),
	}
	edit(&m.cfg)
	g.members = append(g.members, m)
	m.start()
	return m
}

// testWriter writes a node's log messages to the test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimSpace(b))
	return len(b), nil
}

func (g *group) close() {
	for _, m := range g.members {
		m.close()
	}
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (g *group) propose(m *member, from, n int) {
	g.t.Helper()
	ctx := soon(g.t)
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := from; i < from+n; i++ {
		wg.Go(func() {
			if _, err := m.node.Propose(ctx, fmt.Appendf(nil, "value %d", i)); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		g.t.Fatalf("%s: %v", m.cfg.Self.Name, err)
	default:
	}
}

// leader waits until the members agree on a leader and returns it.
func (g *group) leader() *member {
	g.t.Helper()
	ctx := soon(g.t)
	for {
		for _, m := range g.members {
			if m.node == nil {
				continue
			}
			if lead, ok := m.node.Leader(); ok && lead.ID == m.node.Self().ID {
				return m
			}
		}
		select {
		case <-ctx.Done():
			g.t.Fatal("no leader")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (g *group) other(m *member) *member {
	for _, o := range g.members {
		if o != m && o.node != nil {
			return o
		}
	}
	return nil
}

var three = []consensus.Role{consensus.Voter, consensus.Voter, consensus.Voter}

// same checks that all running members applied the same n values.
func (g *group) same(n int) {
	g.t.Helper()
	var want []string
	for _, m := range g.members {
		if m.node == nil || m.cfg.Self.Role == consensus.Witness {
			continue
		}
		got := m.waitFor(n)
		if want == nil {
			want = got
			sorted := slices.Sorted(slices.Values(got))
			if len(sorted) != n || len(slices.Compact(sorted)) != n {
				g.t.Errorf("%s has %d values, %d of them distinct, want %d", m.cfg.Self.Name, len(got), len(slices.Compact(sorted)), n)
			}
		}
		if !slices.Equal(got, want) {
			g.t.Errorf("%s and %s applied different values", m.cfg.Self.Name, g.members[0].cfg.Self.Name)
		}
	}
}

func (g *group) awaitStatus(m *member, what string, ok func(consensus.Status) bool) {
	g.t.Helper()
	ctx := soon(g.t)
	for !ok(m.node.Status()) {
		select {
		case <-ctx.Done():
			g.t.Fatalf("timeout waiting until %s is %s: %+v", m.cfg.Self.Name, what, m.node.Status())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
