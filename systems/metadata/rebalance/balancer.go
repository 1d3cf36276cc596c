package rebalance

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"skerry/systems/metadata"
)

// Service answers commands.
type Service interface {
	Do(ctx context.Context, commands []metadata.Command) []metadata.Result
}

// Options are what a balancer needs.
type Options struct {
	Policy Policy
	// Self is the server's name, Root that of the one that has "/".
	Self, Root string
	// Ask asks all servers that share the tree, this one among them, for their load; those
	// that are out of reach are not in its answer.
	Loads func(ctx context.Context) map[string]ServerLoad
	// Whole is the whole tree, Own the server's own.
	Whole, Own Service
	// Leads tells whether this is the replica that balances for its server; nil: it is.
	Leads func() bool
	Log   *slog.Logger
	Now   func() time.Time // nil: time.Now
}

// Status is what a balancer has done.
type Status struct {
	Moves   int64  `json:"moves"`   // since the start
	Refused int64  `json:"refused"` // moves that did not come about
	Last    string `json:"last"`    // what the last round came to
}

// Balancer gives directories of one server away.
type Balancer struct {
	o       Options
	history history // of rounds, which one goroutine runs

	mu     sync.Mutex
	status Status
}

// NewBalancer is a balancer that has seen nothing yet.
func NewBalancer(o Options) *Balancer {
	o.Policy = o.Policy.WithDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Leads == nil {
		o.Leads = func() bool { return true }
	}
	return &Balancer{o: o, history: history{large: make(map[string]time.Time)}}
}

// Run runs rounds until the context ends.
func (b *Balancer) Run(ctx context.Context) {
	tick := time.NewTicker(b.o.Policy.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.RunRound(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Status is what the balancer has done so far.
func (b *Balancer) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// RunRound looks at the servers, and gives at most one directory away. It returns when that
// has arrived. Rounds do not run at the same time.
func (b *Balancer) RunRound(ctx context.Context) {
	if !b.o.Leads() {
		b.history.over = 0
		b.updateStatus(func(s *Status) { s.Last = "another replica balances" })
		return
	}
	maps.DeleteFunc(b.history.large, func(_ string, until time.Time) bool { return b.o.Now().After(until) })
	view := View{Self: b.o.Self, Root: b.o.Root, Servers: b.o.Loads(ctx)}
	for ctx.Err() == nil {
		now := b.o.Now()
		m, why := b.o.Policy.choose(now, &b.history, view)
		if why == "" && b.tooLarge(ctx, m.Own) {
			b.history.large[m.Own] = now.Add(b.o.Policy.Stay)
			b.o.Log.Info("a hot subtree stays: it has more entries than are copied", "path", m.Path, "ops_per_s", int(m.Rate), "entries", b.o.Policy.Entries)
			continue
		}
		if why == "" {
			why = b.moveSubtree(ctx, m)
		}
		b.updateStatus(func(s *Status) { s.Last = why })
		return
	}
}

func (b *Balancer) updateStatus(what func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what(&b.status)
}

// moveSubtree moves a directory. One that cannot go, since another transaction has it, or since it
// is gone, is no error: it is looked at again behind the rest.
func (b *Balancer) moveSubtree(ctx context.Context, m Move) (how string) {
	start := b.o.Now()
	result := b.o.Whole.Do(ctx, []metadata.Command{{Op: metadata.Delegate, Path: m.Path, Owner: m.To, MaxDepth: -1}})[0]
	end := b.o.Now()
	b.history.rest, b.history.over = end.Add(b.o.Policy.Rest), 0
	log := b.o.Log.With("path", m.Path, "to", m.To, "ops_per_s", int(m.Rate), "here", int(m.Here), "there", int(m.There), "mean", int(m.Mean))
	if result.Err != nil {
		b.updateStatus(func(s *Status) { s.Refused++ })
		log.Info("a hot subtree was not moved", "error", result.Err)
		return fmt.Sprintf("%s was not moved to %s: %v", metadata.Quote(m.Path), m.To, result.Err)
	}
	b.updateStatus(func(s *Status) { s.Moves++ })
	log.Info("moved a hot subtree: the server has more to do than the others", "took", end.Sub(start))
	return fmt.Sprintf("moved %s with %.0f operations/s to %s: %.0f here, %.0f there, %.0f on average", metadata.Quote(m.Path), m.Rate, m.To, m.Here, m.There, m.Mean)
}

// tooLarge tells whether a directory has more entries than may be copied.
func (b *Balancer) tooLarge(ctx context.Context, own string) bool {
	page := metadata.Command{Op: metadata.Find, Path: own, Across: true, Limit: metadata.MaxLimit, MaxDepth: -1}
	for n := 0; n <= b.o.Policy.Entries; {
		found := b.o.Own.Do(ctx, []metadata.Command{page})[0]
		n += len(found.Entries)
		if found.Err != nil || found.Next == "" {
			return n > b.o.Policy.Entries // one that is gone is refused by the move
		}
		page.After = found.Next
	}
	return true
}
