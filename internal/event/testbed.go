package event

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/machine/host"
	"skerry/internal/record"
)

// Testbed is what events act on: a lab, and the cluster on it.
type Testbed struct {
	Links   *LinkLayers
	Cluster database.Cluster
	// Host returns the node with a name.
	Host func(name string) (host.Host, error)
	// Member returns where the database runs on that node, when it is in a container there;
	// nil for the node itself.
	Member func(name string) (host.Host, error)
	// Carried tells what links have carried lately; nil where nobody counts.
	Carried func(ids []string) *record.Carried
	// Exe is the skerry program on a node's machine, which the programs that use up a node are
	// part of.
	Exe func(node string) (string, error)

	// resizing is where changes of the membership wait for each other, as a person with a
	// terminal does.
	membership ctxMutex
	diskLimits diskLimits
	mu         sync.Mutex
	nodes      map[string]*nodeState
}

// nodeState is what events have made of a node.
type nodeState struct {
	// lifecycle is where those wait for each other who end or start the database there.
	lifecycle ctxMutex

	mu     sync.Mutex
	halted bool
	paused bool
}

func (w *Testbed) nodeState(name string) *nodeState {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes == nil {
		w.nodes = map[string]*nodeState{}
	}
	if w.nodes[name] == nil {
		w.nodes[name] = new(nodeState)
	}
	return w.nodes[name]
}

func (n *nodeState) isHalted() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.halted
}

func (n *nodeState) setHalted(halted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.halted = halted
}

// databaseHost is where the database runs on a node.
func (w *Testbed) databaseHost(name string) (host.Host, error) {
	if w.Member != nil {
		return w.Member(name)
	}
	return w.Host(name)
}

// halt ends the database's processes on a node.
func (w *Testbed) halt(ctx context.Context, name string, manner database.Manner) error {
	h, err := w.databaseHost(name)
	if err != nil {
		return err
	}
	n := w.nodeState(name)
	done, err := n.lifecycle.lock(ctx)
	if err != nil {
		return err
	}
	defer done()
	if n.isHalted() {
		return fmt.Errorf("%w: the database on %s has been ended already", ErrState, name)
	}
	if err := w.Cluster.Halt(ctx, h, manner); err != nil {
		return err
	}
	n.setHalted(true)
	return nil
}

// revive starts the database's processes on a node again.
func (w *Testbed) revive(ctx context.Context, name string) error {
	h, err := w.databaseHost(name)
	if err != nil {
		return err
	}
	n := w.nodeState(name)
	done, err := n.lifecycle.lock(ctx)
	if err != nil {
		return err
	}
	defer done()
	if !n.isHalted() {
		return fmt.Errorf("%w: the database on %s runs", ErrState, name)
	}
	err = w.Cluster.Revive(ctx, h)
	if errors.Is(err, database.ErrNotMember) { // it was removed meanwhile
		n.setHalted(false)
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if err != nil {
		return err
	}
	n.setHalted(false)
	return nil
}

// join makes a node a member, leave ends its membership; both tell when the request was
// made and what came of it.
func (w *Testbed) join(ctx context.Context, name string, p *progress) error {
	return w.changeMembership(ctx, name, p, func(h host.Host) (database.Change, error) { return w.Cluster.Join(ctx, h) })
}

func (w *Testbed) leave(ctx context.Context, name string, manner database.Manner, p *progress) error {
	return w.changeMembership(ctx, name, p, func(h host.Host) (database.Change, error) { return w.Cluster.Leave(ctx, h, manner) })
}

func (w *Testbed) changeMembership(ctx context.Context, name string, p *progress, change func(host.Host) (database.Change, error)) error {
	h, err := w.databaseHost(name)
	if err != nil {
		return err
	}
	leave, err := w.membership.lock(ctx)
	if err != nil {
		return err
	}
	defer leave()
	asked := time.Now()
	done, err := change(h)
	if done.Accepted > 0 {
		p.accept(asked.Add(done.Accepted))
	}
	if err != nil {
		return err
	}
	p.addBytes(done.Bytes)
	return nil
}

func (w *Testbed) pause(ctx context.Context, name string) error {
	f, n, err := w.controls(name)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paused {
		return fmt.Errorf("%w: %s is paused already", ErrState, name)
	}
	if err := f.Freeze(ctx); err != nil {
		return errors.Join(err, f.Thaw())
	}
	n.paused = true
	return nil
}

func (w *Testbed) resume(name string) error {
	f, n, err := w.controls(name)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.paused {
		return fmt.Errorf("%w: %s is not paused", ErrState, name)
	}
	if err := f.Thaw(); err != nil {
		return err
	}
	n.paused = false
	return nil
}

func (w *Testbed) controls(name string) (host.Controls, *nodeState, error) {
	h, err := w.Host(name)
	if err != nil {
		return nil, nil, err
	}
	f, ok := h.(host.Controls)
	if !ok {
		return nil, nil, fmt.Errorf("pausing %s: %w here", name, ErrUnavailable)
	}
	return f, w.nodeState(name), nil
}

// ctxMutex lets one through at a time, and those that wait give up with their context: what
// is done behind it may take an hour.
type ctxMutex struct {
	once sync.Once
	slot chan struct{}
}

// lock returns how to leave.
func (g *ctxMutex) lock(ctx context.Context) (leave func(), err error) {
	g.once.Do(func() { g.slot = make(chan struct{}, 1) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case g.slot <- struct{}{}:
		return func() { <-g.slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
