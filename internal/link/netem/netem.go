// Package netem is the link engine of the kernel. Each link is a pair of veth devices. Each direction has a tree of
// qdiscs on its sending device (tree.go): netem draws the fates of packets and delays them, and hfsc below it limits
// the bandwidth.
//
//	namespace A                      namespace B
//	┌──────────────────────┐        ┌──────────────────────┐
//	│ IP ─► qdiscs ► veth ═╪════════╪═ veth ─► IP          │   A to B: delay, loss, rate ...
//	│ IP ◄───────── veth ══╪════════╪═ veth ◄ qdiscs ◄─ IP │   B to A
//	└──────────────────────┘        └──────────────────────┘
//
// ARP is off, because its packets would be delayed, lost and counted as the nodes' own. Both ends have one MAC
// address, so that every frame reaches its receiver.
//
// netem differs from the contract of link.Quality in these points:
//
//   - Packets pass the latency before the bandwidth. A change of the bandwidth reaches the receiver at once
//     instead of after the latency, and also affects packets in flight.
//   - A packet leaves when those before it have been transmitted: its own transmission does not delay it. After a
//     change of the bandwidth the next packet leaves at once.
//   - Bandwidths above 34 Gbit/s, and unlimited ones, are 34 Gbit/s.
//   - Jitter is drawn for each packet independently. No packet overtakes another, so the mean delay grows and the
//     deviation shrinks if packets are closer together than the jitter. netem's correlation does not help: it selects
//     from a distribution by the low bits of the random number, which are not correlated.
//   - Corrupt may hit any byte of the frame, including the Ethernet and IP headers. Such a packet is lost.
//   - A packet that is both lost and duplicated arrives once.
//   - Random choices follow Spec.Seed from Linux 6.6 on.
//   - A TCP super-packet is one event to netem. Super-packets are disabled if packets are drawn one by one or
//     charged to a bandwidth. Super-packets that are forwarded for other nodes, or made by UDP_SEGMENT, stay whole
//     and are charged with the headers of one packet only.
package netem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"skerry/internal/link"
)

// Name is the result of Engine.Name.
const Name = "netem"

// removers is the number of concurrent removals: each waits for a grace period of the kernel, and these overlap.
const removers = 32

// Engine creates links of veth pairs and netem qdiscs. It holds two descriptors per namespace and no goroutine.
type Engine struct {
	log *slog.Logger

	mu     sync.Mutex
	links  map[string]*wire
	spaces map[string]*namespace // by path
	tables tables
}

var _ link.Engine = (*Engine)(nil)

// New returns an engine without links. Call Available first.
func New(log *slog.Logger) *Engine {
	return &Engine{log: log, links: map[string]*wire{}, spaces: map[string]*namespace{}, tables: tables{}}
}

func (e *Engine) Name() string { return Name }

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
			err = fmt.Errorf("create link %s: %w", spec.ID, err)
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
	added := map[string]bool{}
	for _, spec := range specs {
		err := spec.Validate()
		if err == nil && spec.B.Path != nil {
			err = fmt.Errorf("%w %s: netem does not support links between machines", link.ErrInvalid, spec.ID)
		}
		if err != nil {
			return err
		}
		if added[spec.ID] || e.links[spec.ID] != nil {
			return fmt.Errorf("%w: %s", link.ErrExists, spec.ID)
		}
		added[spec.ID] = true
	}
	return nil
}

// Set implements link.Engine. The kernel changes one qdisc at a time: 112 directions take a few milliseconds.
// Packets in flight keep their due times, and queued packets leave at the new bandwidth. If the kernel refuses a
// change, the previous ones are reverted.
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
	if err := e.updateCounters(); err != nil { // drops so far belong to the old quality
		return err
	}
	for i, s := range steps {
		if err := s.direction.set(e.tables, s.next); err != nil {
			err = fmt.Errorf("change quality of %s: %w", s.direction.device.name, err)
			for _, done := range steps[:i] {
				err = errors.Join(err, done.direction.set(e.tables, done.was))
			}
			return err
		}
	}
	return nil
}

// step is the change of one direction.
type step struct {
	direction *direction
	was, next link.Quality
}

// plan validates all changes before Set applies any.
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

func (e *Engine) Remove(_ context.Context, ids ...string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var removed []*wire
	for _, id := range ids {
		if w := e.links[id]; w != nil {
			removed = append(removed, w)
			delete(e.links, id)
		}
	}
	return e.removeLinks(removed)
}

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

// removeLinks removes the devices of links and releases their namespaces.
func (e *Engine) removeLinks(wires []*wire) error {
	var group errgroup.Group
	group.SetLimit(removers)
	failed := make([]error, len(wires))
	for i, w := range wires {
		group.Go(func() error {
			failed[i] = w.ab.device.remove() // removes its peer too
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

// allSegments is the kernel's unrestricted number of segments per super-packet on a veth device, GSO_MAX_SEGS.
const allSegments = 65535

// Adopt takes over links that another process created and left with Detach, all or none. specs hold their
// present qualities. Earlier drops count as drops by the present quality.
func (e *Engine) Adopt(ctx context.Context, specs []link.Spec) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.validateNew(specs); err != nil {
		return err
	}
	adopted := make([]*wire, 0, len(specs))
	for _, spec := range specs {
		w, err := e.adopt(ctx, spec)
		if err != nil {
			e.releaseAll(adopted)
			return fmt.Errorf("adopt link %s: %w", spec.ID, err)
		}
		adopted = append(adopted, w)
	}
	for _, w := range adopted {
		e.links[w.id] = w
	}
	return nil
}

// Detach releases the engine's resources and leaves its links in the kernel.
func (e *Engine) Detach() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*wire
	for _, w := range e.links {
		all = append(all, w)
	}
	clear(e.links)
	e.releaseAll(all)
	return nil
}

func (e *Engine) releaseAll(wires []*wire) {
	for _, w := range wires {
		e.release(w.ab.device.space)
		e.release(w.ba.device.space)
	}
}

func (e *Engine) adopt(ctx context.Context, spec link.Spec) (*wire, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := e.adoptDevice(spec.A)
	if err != nil {
		return nil, err
	}
	b, err := e.adoptDevice(spec.B)
	if err != nil {
		e.release(a.space)
		return nil, err
	}
	return &wire{
		id: spec.ID,
		ab: direction{device: a, quality: spec.AB, seeds: rand.NewPCG(spec.Seed, 1)},
		ba: direction{device: b, quality: spec.BA, seeds: rand.NewPCG(spec.Seed, 2)},
	}, nil
}

func (e *Engine) adoptDevice(end link.End) (*device, error) {
	space, err := e.enter(end.Netns)
	if err != nil {
		return nil, err
	}
	dev, err := space.devices.LinkByName(end.Device)
	if err != nil {
		e.release(space)
		return nil, fmt.Errorf("find device %s: %w", end.Device, err)
	}
	at := dev.Attrs()
	d := &device{space: space, name: end.Device, index: at.Index, mtu: at.MTU, segments: int(at.GSOMaxSegs)}
	if d.segments == 1 {
		d.segments, d.alone = allSegments, true
	}
	return d, nil
}
