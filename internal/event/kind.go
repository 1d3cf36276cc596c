package event

import (
	"context"
	"errors"
	"math/rand/v2"
)

// Sentinel errors of events.
var (
	// ErrUnavailable says that this machine, or this database, cannot do what an event asks.
	ErrUnavailable = errors.New("unavailable")
	// ErrState says that a node is not in the state that an event needs: one that is to be
	// killed has ended already, for example.
	ErrState = errors.New("wrong state")
	// ErrEnded says that what an event had started ended before its time.
	ErrEnded = errors.New("ended before its time")
)

// kind is one kind of event as an experiment describes it.
type kind interface {
	// check reports what is wrong with it on a stage.
	check(s Stage, fail failure)
	// draw resolves the occurrence with that number, from 0: whom it happens to. Of the
	// targets it leaves out those that are busy. Nil is when there is nobody left.
	draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action
}

// failure reports a mistake at a key of the event's kind, "" for the kind as a whole.
type failure func(key, hint, format string, args ...any)

// action is one occurrence of an event. Revert may be called after an apply that failed
// half-way, and takes back what had been done.
type action interface {
	// targets are the nodes or links that it happens to.
	targets() []string
	// what says it in a few words: "latency of Pune~Sydney x 3".
	what() string
	apply(ctx context.Context, w *World, p *progress) error
	revert(ctx context.Context, w *World, p *progress) error
}

// lasting is an action that is not reverted when the trial ends, since it is a change for
// good unless the experiment says when it is over: a member that left.
type lasting interface{ lasts() bool }

// fragile is an action that can end by itself once it was applied: a process dies.
type fragile interface {
	// ended is closed then.
	ended() <-chan struct{}
	// err says why.
	err() error
}

// kinds are all kinds of events.
var kinds = []struct {
	name string
	of   func(*Event) kind // nil where the event is of another kind
}{
	{"latency", func(e *Event) kind { return some(e.Latency) }},
	{"bandwidth", func(e *Event) kind { return some(e.Bandwidth) }},
	{"loss", func(e *Event) kind { return some(e.Loss) }},
	{"jitter", func(e *Event) kind { return some(e.Jitter) }},
	{"link_down", func(e *Event) kind { return some(e.LinkDown) }},
	{"link_up", func(e *Event) kind { return some((*linkUp)(e.LinkUp)) }},
	{"link_flap", func(e *Event) kind { return some(e.LinkFlap) }},
	{"partition", func(e *Event) kind { return some(e.Partition) }},
	{"kill", func(e *Event) kind { return some((*kill)(e.Kill)) }},
	{"stop", func(e *Event) kind { return some((*stop)(e.Stop)) }},
	{"start", func(e *Event) kind { return some((*start)(e.Start)) }},
	{"restart", func(e *Event) kind { return some(e.Restart) }},
	{"pause", func(e *Event) kind { return some((*pause)(e.Pause)) }},
	{"resume", func(e *Event) kind { return some((*resume)(e.Resume)) }},
	{"leave", func(e *Event) kind { return some(e.Leave) }},
	{"join", func(e *Event) kind { return some((*join)(e.Join)) }},
	{"cpu", func(e *Event) kind { return some(e.CPU) }},
	{"memory", func(e *Event) kind { return some(e.Memory) }},
	{"disk_slow", func(e *Event) kind { return some(e.DiskSlow) }},
	{"disk_full", func(e *Event) kind { return some(e.DiskFull) }},
	{"network_load", func(e *Event) kind { return some(e.NetworkLoad) }},
	{"clock_skew", func(e *Event) kind { return some(e.ClockSkew) }},
}

// some is a kind, or the nil interface where the pointer is nil.
func some[P interface {
	*T
	kind
}, T any](p P) kind {
	if p == nil {
		return nil
	}
	return p
}
