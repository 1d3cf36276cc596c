package event

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/link"
	"skerry/internal/machine/host"
	"skerry/internal/record"
	"skerry/internal/topology"
)

// stage returns four sites with one node each, linked with 40 ms one way, and a client at the
// first. The database runs on the first three.
func stage() Layout {
	t := topology.Topology{}
	names := []string{"oslo", "bergen", "narvik", "vardo"}
	for _, n := range names {
		t.Sites = append(t.Sites, topology.Site{Name: n})
		t.Nodes = append(t.Nodes, topology.Node{Name: n, Site: n, Role: topology.Data})
	}
	t.Nodes = append(t.Nodes, topology.Node{Name: "client", Site: "oslo", Role: topology.Client})
	for i, a := range t.Nodes {
		for _, b := range t.Nodes[i+1:] {
			q := link.Quality{Latency: 40 * time.Millisecond, Bandwidth: 100e6}
			t.Links = append(t.Links, topology.Link{ID: a.Name + "~" + b.Name, A: a.Name, B: b.Name, AB: q, BA: q})
		}
	}
	return Layout{Topology: t, Data: names[:3], Clients: []string{"client"}}
}

// engine is a LinkSetter that stores settings.
type engine struct {
	mu   sync.Mutex
	now  map[direction]link.Quality
	sets int
	fail error
	dark map[string]bool // links whose devices are down
	deaf error           // error of Carrier
}

func (e *engine) Carrier(id string, up bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.deaf != nil {
		return e.deaf
	}
	if e.dark == nil {
		e.dark = map[string]bool{}
	}
	if e.dark[id] = true; up {
		delete(e.dark, id)
	}
	return nil
}

func (e *engine) Set(_ context.Context, changes []link.Change) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fail != nil {
		return e.fail
	}
	e.sets++
	for _, c := range changes {
		if c.AB != nil {
			e.now[direction{c.ID, false}] = *c.AB
		}
		if c.BA != nil {
			e.now[direction{c.ID, true}] = *c.BA
		}
	}
	return nil
}

func (e *engine) at(id string, back bool) link.Quality {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now[direction{id, back}]
}

// changed returns the directions whose settings differ from the topology.
func (e *engine) changed(s Layout) (out []string) {
	for _, l := range s.Topology.Links {
		if e.at(l.ID, false) != l.AB {
			out = append(out, l.A+">"+l.B)
		}
		if e.at(l.ID, true) != l.BA {
			out = append(out, l.B+">"+l.A)
		}
	}
	return out
}

// cluster is a database whose changes take a given time.
type cluster struct {
	database.Cluster // other methods are not called

	mu      sync.Mutex
	members map[string]bool
	down    map[string]bool
	said    []string
	accept  time.Duration
	takes   time.Duration
	fails   map[string]error // by "leave oslo"
}

func (c *cluster) do(ctx context.Context, what, node string, change func()) (database.Change, error) {
	c.mu.Lock()
	c.said = append(c.said, what+" "+node)
	err, accept, takes := c.fails[what+" "+node], c.accept, c.takes
	c.mu.Unlock()
	if err != nil {
		return database.Change{}, fmt.Errorf("%s %s: %w", what, node, err)
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return database.Change{Accepted: accept}, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	return database.Change{Accepted: accept, Complete: takes, Bytes: 1000}, nil
}

func (c *cluster) Join(ctx context.Context, h host.Host) (database.Change, error) {
	return c.do(ctx, "join", h.Name(), func() { c.members[h.Name()] = true })
}

func (c *cluster) Leave(ctx context.Context, h host.Host, m database.Manner) (database.Change, error) {
	return c.do(ctx, "leave", h.Name(), func() { delete(c.members, h.Name()) })
}

func (c *cluster) Halt(ctx context.Context, h host.Host, m database.Manner) error {
	_, err := c.do(ctx, "halt "+m.String(), h.Name(), func() { c.down[h.Name()] = true })
	return err
}

func (c *cluster) Revive(ctx context.Context, h host.Host) error {
	_, err := c.do(ctx, "revive", h.Name(), func() { delete(c.down, h.Name()) })
	return err
}

// machine is a host that can be paused.
type machine struct {
	host.Host
	host.Controls
	name   string
	mu     sync.Mutex
	frozen bool
}

func (m *machine) Name() string { return m.name }

func (m *machine) Freeze(context.Context) error { return m.set(true) }
func (m *machine) Thaw() error                  { return m.set(false) }

func (m *machine) set(frozen bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frozen = frozen
	return nil
}

// bench is a test environment of fakes with a runner.
type bench struct {
	t       *testing.T
	stage   Layout
	engine  *engine
	cluster *cluster
	hosts   map[string]*machine
	world   *Testbed
	runner  *Runner
	lines   []record.Event
	stop    context.CancelFunc
	done    chan error
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, stage: stage(), engine: &engine{now: map[direction]link.Quality{}}, hosts: map[string]*machine{}}
	b.cluster = &cluster{members: map[string]bool{"oslo": true, "bergen": true, "narvik": true}, down: map[string]bool{},
		fails:  map[string]error{},
		accept: 2 * time.Second, takes: 5 * time.Second}
	for _, n := range b.stage.Topology.Nodes {
		b.hosts[n.Name] = &machine{name: n.Name}
	}
	for _, l := range b.stage.Topology.Links {
		b.engine.now[direction{l.ID, false}], b.engine.now[direction{l.ID, true}] = l.AB, l.BA
	}
	b.world = &Testbed{Links: NewLinkLayers(b.stage.Topology.Links, b.engine), Cluster: b.cluster, Host: func(name string) (host.Host, error) {
		if h := b.hosts[name]; h != nil {
			return h, nil
		}
		return nil, errors.New("no such node")
	}}
	return b
}

// start runs events in the form of an experiment, within a synctest bubble.
func (b *bench) start(events string) {
	b.t.Helper()
	list := read(b.t, events)
	Check(list, b.stage, 0, func(path, hint, format string, args ...any) {
		b.t.Errorf("%s: %s", path, fmt.Sprintf(format, args...))
	})
	var mu sync.Mutex
	var err error
	b.runner, err = NewRunner(Config{Events: list, Stage: b.stage, World: b.world, Seed: 7, Record: func(e record.Event) error {
		mu.Lock()
		defer mu.Unlock()
		b.lines = append(b.lines, e)
		return nil
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	b.stop, b.done = cancel, make(chan error, 1)
	zero := time.Now()
	go func() { b.done <- b.runner.Run(ctx, zero) }()
	synctest.Wait()
}

// pass lets time pass.
func (b *bench) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// end ends the trial and returns its events.
func (b *bench) end() []record.Event {
	b.t.Helper()
	b.stop()
	if err := <-b.done; err != nil {
		b.t.Fatal(err)
	}
	return b.runner.Events()
}

// read decodes a list of events.
func read(t *testing.T, events string) []Event {
	t.Helper()
	var doc struct {
		Events []Event `yaml:"events"`
	}
	root, err := strict.Parse("events.yaml", []byte("events:\n"+strings.TrimSuffix(events, "\n")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if ps := strict.Decode(root, &doc, ""); len(ps) > 0 {
		t.Fatal(ps)
	}
	return doc.Events
}

// at formats the begin and the end of a step in whole seconds: "10-15".
func at(s *record.Step) string {
	switch {
	case s == nil:
		return ""
	case s.Completed == nil:
		return fmt.Sprintf("%.0f-", s.Began.Seconds())
	}
	return fmt.Sprintf("%.0f-%.0f", s.Began.Seconds(), s.Completed.Seconds())
}

// formatEvent formats an event: "leave narvik 10-15 reverted 75-80".
func formatEvent(e record.Event) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s", e.Kind, strings.Join(e.Targets, ","), at(e.Apply),
		e.State, at(e.Revert))), " ")
}

func formatEvents(events []record.Event) (lines []string) {
	for _, e := range events {
		lines = append(lines, formatEvent(e))
	}
	return lines
}

// able is a database that supports all events.
var able = database.Capabilities{MinNodes: 1, Resize: true, Restart: true, LeaveAbrupt: true}
