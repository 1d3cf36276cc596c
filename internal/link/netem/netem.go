// Package netem is the link engine of the kernel: each link is a pair of veth devices,
// each direction of it a tree of qdiscs on the sending device (tree.go): netem draws what
// happens to packets and delays them, hfsc below it holds them to the bandwidth.
//
//	namespace A                      namespace B
//	┌──────────────────────┐        ┌──────────────────────┐
//	│ IP ─► qdiscs ► veth ═╪════════╪═ veth ─► IP          │   A to B: delay, loss, rate ...
//	│ IP ◄───────── veth ══╪════════╪═ veth ◄ qdiscs ◄─ IP │   B to A
//	└──────────────────────┘        └──────────────────────┘
//
// The devices do not ask for neighbours' addresses (ARP would be delayed, lost and
// counted as the nodes' own packets): both ends bear one MAC address, so that
// every frame finds its receiver.
//
// Where netem differs from the letter of link.Quality:
//
//   - Packets pass the latency before the bandwidth. A change of the bandwidth reaches the receiver
//     at once, instead of after the latency, and packets in flight meet it too.
//   - A packet leaves when those before it have been transmitted: its own transmission does not
//     delay it. After a change of the bandwidth the next packet leaves at once.
//   - Bandwidths above 34 Gbit/s, and none, are 34 Gbit/s.
//   - Jitter is drawn for each packet on its own. As no packet overtakes another, the mean delay
//     grows and the deviation shrinks where packets are closer together than the jitter. netem's
//     correlation does not help: it picks from a distribution by the low bits of the random number,
//     which are not correlated.
//   - Corrupt may hit any byte of the frame, the Ethernet and IP headers included;
//     such a packet is lost.
//   - A packet that is both lost and duplicated arrives once.
//   - Random choices follow Spec.Seed from Linux 6.6 on.
//   - A TCP super-packet, one event to netem, is avoided where packets are drawn one
//     by one or charged to a bandwidth; those that are forwarded for other nodes,
//     or that UDP_SEGMENT makes, stay whole, and are charged without the headers of all
//     their packets but one.
package netem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"skerry/internal/link"
)

// Name is what Engine.Name returns.
const Name = "netem"

// removers is how many links are removed at a time: the kernel waits for a grace
// period in each removal, and those pass together.
const removers = 32

// Engine makes links of veth pairs and netem qdiscs. It holds no state outside the
// kernel but two descriptors a namespace, and no goroutine.
type Engine struct {
	log *slog.Logger

	mu     sync.Mutex
	links  map[string]*wire
	spaces map[string]*namespace // by path
	tables tables
}

var _ link.Engine = (*Engine)(nil)

// New returns an engine without links. Whether the kernel can do what the engine
// needs tells Available.
func New(log *slog.Logger) *Engine {
	return &Engine{log: log, links: map[string]*wire{}, spaces: map[string]*namespace{}, tables: tables{}}
}

// Name is "netem".
func (e *Engine) Name() string { return Name }

// Create makes all links or none.
func (e *Engine) Create(ctx context.Context, specs []link.Spec) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.validateNew(specs); err != nil {
		return err
	}
	made := make([]*wire, 0, len(specs))
	for _, spec := range specs {
		w, err := e.createLink(ctx, spec)
		if err != nil {
			err = fmt.Errorf("making link %s: %w", spec.ID, err)
			return errors.Join(err, e.removeLinks(made))
		}
		made = append(made, w)
	}
	for _, w := range made {
		e.links[w.id] = w
	}
	return nil
}

func (e *Engine) validateNew(specs []link.Spec) error {
	asked := map[string]bool{}
	for _, spec := range specs {
		err := spec.Validate()
		if err == nil && spec.B.Path != nil {
			err = fmt.Errorf("%w %s: netem shapes within one machine alone", link.ErrInvalid, spec.ID)
		}
		if err != nil {
			return err
		}
		if asked[spec.ID] || e.links[spec.ID] != nil {
			return fmt.Errorf("%w: %s", link.ErrExists, spec.ID)
		}
		asked[spec.ID] = true
	}
	return nil
}

// Set changes links at one moment, as far as the kernel, which takes one qdisc at a
// time, allows: 112 directions take a few milliseconds. Packets in flight keep the time
// they were given, those in the queue leave at the new bandwidth. When the kernel refuses a change those before it are undone.
func (e *Engine) Set(ctx context.Context, changes []link.Change) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	steps, err := e.plan(changes)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.updateCounters(); err != nil { // drops so far belong to the quality so far
		return err
	}
	for i, s := range steps {
		if err := s.direction.set(e.tables, s.next); err != nil {
			err = fmt.Errorf("changing the quality of %s: %w", s.direction.device.name, err)
			for _, done := range steps[:i] {
				err = errors.Join(err, done.direction.set(e.tables, done.was))
			}
			return err
		}
	}
	return nil
}

// step is one direction's part in a Set.
type step struct {
	direction *direction
	was, next link.Quality
}

// plan checks changes, so that Set has done nothing when one of them is wrong.
func (e *Engine) plan(changes []link.Change) ([]step, error) {
	var steps []step
	add := func(d *direction, q *link.Quality) error {
		if q == nil {
			return nil
		}
		steps = append(steps, step{direction: d, was: d.quality, next: *q})
		return q.Validate()
	}
	for _, c := range changes {
		w := e.links[c.ID]
		if w == nil {
			return nil, fmt.Errorf("%w: %s", link.ErrUnknown, c.ID)
		}
		if err := errors.Join(add(&w.ab, c.AB), add(&w.ba, c.BA)); err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID, err)
		}
	}
	return steps, nil
}

// Stats reports the links named, or all in the order of their IDs when none is.
func (e *Engine) Stats(ctx context.Context, ids ...string) ([]link.Stats, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		for id := range e.links {
			ids = append(ids, id)
		}
		slices.Sort(ids)
	}
	for _, id := range ids {
		if e.links[id] == nil {
			return nil, fmt.Errorf("%w: %s", link.ErrUnknown, id)
		}
	}
	if err := e.updateCounters(); err != nil {
		return nil, err
	}
	stats := make([]link.Stats, len(ids))
	for i, id := range ids {
		w := e.links[id]
		stats[i] = link.Stats{ID: id, AB: w.ab.counters, BA: w.ba.counters}
	}
	return stats, nil
}

// Remove takes links away with their devices; an unknown one is no error.
func (e *Engine) Remove(_ context.Context, ids ...string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var gone []*wire
	for _, id := range ids {
		if w := e.links[id]; w != nil {
			gone = append(gone, w)
			delete(e.links, id)
		}
	}
	return e.removeLinks(gone)
}

// Close removes every link and frees what the engine holds.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*wire
	for _, w := range e.links {
		all = append(all, w)
	}
	clear(e.links)
	return e.removeLinks(all)
}

// removeLinks removes the devices of links and lets go of their namespaces.
func (e *Engine) removeLinks(wires []*wire) error {
	var group errgroup.Group
	group.SetLimit(removers)
	failed := make([]error, len(wires))
	for i, w := range wires {
		group.Go(func() error {
			failed[i] = w.ab.device.remove() // takes its peer along
			return nil
		})
	}
	group.Wait()
	for _, w := range wires {
		e.release(w.ab.device.space)
		e.release(w.ba.device.space)
	}
	return errors.Join(failed...)
}
