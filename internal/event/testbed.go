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

// Testbed is what events act on: a lab and the database cluster on it.
type Testbed struct {
	Links   *LinkLayers
	Cluster database.Cluster
	// Host returns a node by name.
	Host func(name string) (host.Host, error)
	// Member returns the container that runs the database on the node. Nil means that the node
	// itself runs it.
	Member func(name string) (host.Host, error)
	// Carried returns the recent traffic of links. Nil if traffic is not counted.
	Carried func(ids []string) *record.Carried
	// Installation is what the cluster was started with, Upgrades the targets of upgrades, by NAME@SERIES.
	Installation database.Installation
	Upgrades     map[string]database.Installation
	// Exe is the path of the skerry program on a node's machine, for stress programs.
	Exe func(node string) (string, error)
	// Lab is the name of the lab. Commands run in the directory CommandDir, and their undos are
	// recorded below UndoDir.
	Lab, CommandDir, UndoDir string

	// membership serialises changes of the membership.
	membership ctxMutex
	versions   map[string]string // of upgraded members; changed by the holder of membership
	diskLimits diskLimits
	mu         sync.Mutex
	nodes      map[string]*nodeState
}

type nodeState struct {
	// lifecycle serialises starts and stops of the database.
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

// databaseHost returns the host that runs the database of a node.
func (w *Testbed) databaseHost(name string) (host.Host, error) {
	if w.Member != nil {
		return w.Member(name)
	}
	return w.Host(name)
}

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
		return fmt.Errorf("%w: the database on %s is down already", errState, name)
	}
	if err := w.Cluster.Halt(ctx, h, manner); err != nil {
		return err
	}
	n.setHalted(true)
	return nil
}

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
		return fmt.Errorf("%w: the database on %s runs", errState, name)
	}
	err = w.Cluster.Revive(ctx, h)
	if errors.Is(err, database.ErrNotMember) { // it was removed in the meantime
		n.setHalted(false)
		return fmt.Errorf("%w: %w", errState, err)
	}
	if err != nil {
		return err
	}
	n.setHalted(false)
	return nil
}

// join makes a node a member, leave ends its membership. Both report the accept time and the moved
// bytes to p.
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
	return w.changeMembers(ctx, p, func() (database.Change, error) { return change(h) })
}

func (w *Testbed) changeMembers(ctx context.Context, p *progress, change func() (database.Change, error)) error {
	leave, err := w.membership.lock(ctx)
	if err != nil {
		return err
	}
	defer leave()
	requested := time.Now()
	done, err := change()
	if done.Accepted > 0 {
		p.accept(requested.Add(done.Accepted))
	}
	if err != nil {
		return err
	}
	p.addBytes(done.Bytes)
	return nil
}

func (w *Testbed) pause(ctx context.Context, name string) error {
	f, err := w.controls(name, "pause")
	if err != nil {
		return err
	}
	n := w.nodeState(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paused {
		return fmt.Errorf("%w: %s is paused already", errState, name)
	}
	if err := f.Freeze(ctx); err != nil {
		return errors.Join(err, f.Thaw())
	}
	n.paused = true
	return nil
}

func (w *Testbed) resume(name string) error {
	f, err := w.controls(name, "resume")
	if err != nil {
		return err
	}
	n := w.nodeState(name)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.paused {
		return fmt.Errorf("%w: %s is not paused", errState, name)
	}
	if err := f.Thaw(); err != nil {
		return err
	}
	n.paused = false
	return nil
}

func (w *Testbed) controls(name, doing string) (host.Controls, error) {
	h, err := w.Host(name)
	if err != nil {
		return nil, err
	}
	if c, ok := h.(host.Controls); ok {
		return c, nil
	}
	return nil, fmt.Errorf("%s %s: %w on this host", doing, name, errUnavailable)
}

// ctxMutex is a mutex whose waiters return when their context ends. A change of membership can
// hold it for an hour.
type ctxMutex struct {
	once sync.Once
	slot chan struct{}
}

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
