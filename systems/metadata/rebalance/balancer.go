// Package rebalance moves hot directories between servers that share a tree, by their operations per second.
//
// Each server runs a balancer, which only gives directories away. In each round it collects the load of all servers
// (View), and chooses at most one directory for the least loaded server (Policy.choose). The limits in Policy keep
// directories from moving back and forth.
package rebalance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"skerry/systems/metadata"
)

// Policy defines when a server gives a directory away. Zero fields mean the defaults.
type Policy struct {
	// Interval is the time between rounds. Default: 10 s.
	Interval time.Duration
	// Factor is the required ratio of the server's load to the mean. Default: 1.25.
	Factor float64
	// Floor is the minimum load, in operations/s, that is worth a move. Default: 1,000.
	Floor float64
	// Rounds is the number of consecutive rounds in which both must hold. Default: 3.
	Rounds int
	// Margin is how far the target's load, with the directory, must stay below this server's load without the move, as a
	// fraction of this server's load. Default: 0.1.
	Margin float64
	// Rest is the pause after a move, until the counts reflect it. Default: 1 min.
	Rest time.Duration
	// Stay is how long an arrived subtree stays, with everything in it. Default: 10 min.
	Stay time.Duration
	// Entries is the maximum number of entries of a moved subtree. Copying is work for both servers. Default: 100,000.
	Entries int
}

// WithDefaults returns the policy with defaults for zero fields.
func (p Policy) WithDefaults() Policy {
	p.Interval = cmp.Or(p.Interval, 10*time.Second)
	p.Factor = cmp.Or(p.Factor, 1.25)
	p.Floor = cmp.Or(p.Floor, 1000)
	p.Rounds = cmp.Or(p.Rounds, 3)
	p.Margin = cmp.Or(p.Margin, 0.1)
	p.Rest = cmp.Or(p.Rest, time.Minute)
	p.Stay = cmp.Or(p.Stay, 10*time.Minute)
	p.Entries = cmp.Or(p.Entries, 100_000)
	return p
}

var ErrPolicy = errors.New("invalid balancer policy")

// Check validates a policy without its defaults.
func (p Policy) Check() error {
	switch {
	case p.Interval < 0, p.Rest < 0, p.Stay < 0, p.Floor < 0, p.Rounds < 0, p.Entries < 0:
		return fmt.Errorf("%w: negative value", ErrPolicy)
	case p.Factor != 0 && !(p.Factor >= 1):
		return fmt.Errorf("%w: factor %v is below 1", ErrPolicy, p.Factor)
	case !(p.Margin >= 0 && p.Margin < 1):
		return fmt.Errorf("%w: margin %v is not in [0, 1)", ErrPolicy, p.Margin)
	}
	return nil
}

// ServerLoad is what a server reports about itself.
type ServerLoad struct {
	Load LoadReport
	// Subtrees has the owners of the virtual directories in the server's own tree.
	Subtrees map[string]string
}

// View has the reports of the reachable servers at about one moment.
type View struct {
	Self string // the server of this balancer
	Root string // the server of "/"
	// Servers has the reachable servers by name.
	Servers map[string]ServerLoad
}

func (v View) Mean() float64 {
	sum := 0.0
	for _, s := range v.Servers {
		sum += s.Load.Rate
	}
	return sum / float64(max(len(v.Servers), 1))
}

func (v View) leastLoaded() (name string, rate float64) {
	for n, s := range v.Servers {
		if name == "" || s.Load.Rate < rate || s.Load.Rate == rate && n < name {
			name, rate = n, s.Load.Rate
		}
	}
	return name, rate
}

func (v View) mountPoints() map[string]mountPoint {
	at := make(map[string]mountPoint)
	for name, s := range v.Servers {
		for path, owner := range s.Subtrees {
			if !metadata.Under(path, metadata.Incoming) {
				at[owner] = mountPoint{name, path}
			}
		}
	}
	return at
}

type mountPoint struct{ server, path string }

// globalPath translates a path of a server's own tree into one of the shared tree. ok is false for "/", and if a server
// on the way is unreachable.
func (v View) globalPath(server, own string, at map[string]mountPoint) (path string, ok bool) {
	for range len(at) + 1 {
		sub, rest := splitSubtree(own)
		if sub == "" {
			whole := own + path
			return whole, server == v.Root && whole != "/" && !metadata.Under(own, metadata.Subtrees) && !metadata.Under(own, metadata.Incoming)
		}
		above, found := at[server+":"+sub]
		if !found {
			return "", false
		}
		server, own, path = above.server, above.path, rest+path
	}
	return "", false // virtual directories that lead to each other
}

// splitSubtree splits a path of a server's own tree into the directory of its subtree, "" if there is none, and the rest.
func splitSubtree(own string) (sub, rest string) {
	for at := own; at != "/"; at, _ = metadata.Split(at) {
		if s, ok := metadata.ParseBase(at); ok && s.Base() == at {
			return at, own[len(at):]
		}
	}
	return "", own
}

// Options configures a balancer.
type Options struct {
	Policy Policy
	// Self is the name of this server, Root of the server of "/".
	Self, Root string
	// Loads returns the load of all reachable servers that share the tree, with this one.
	Loads func(ctx context.Context) map[string]ServerLoad
	// Whole is the shared tree, Own the server's own tree.
	Whole, Own metadata.Service
	// Leads reports whether this replica balances for its server. nil means always.
	Leads func() bool
	Log   *slog.Logger
	Now   func() time.Time // nil means time.Now
}

// Status counts what a balancer has done.
type Status struct {
	Moves   int64  `json:"moves"`   // since the start
	Refused int64  `json:"refused"` // failed moves
	Last    string `json:"last"`    // result of the last round
}

// Balancer gives directories of one server away.
type Balancer struct {
	o       Options
	history history // owned by the goroutine of the rounds

	mu     sync.Mutex
	status Status
}

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

func (b *Balancer) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// RunRound moves at most one directory, and returns after its arrival. Rounds must not overlap.
func (b *Balancer) RunRound(ctx context.Context) {
	if !b.o.Leads() {
		b.history.over = 0
		b.updateStatus(func(s *Status) { s.Last = "another replica runs the balancer" })
		return
	}
	maps.DeleteFunc(b.history.large, func(_ string, until time.Time) bool { return b.o.Now().After(until) })
	view := View{Self: b.o.Self, Root: b.o.Root, Servers: b.o.Loads(ctx)}
	for ctx.Err() == nil {
		now := b.o.Now()
		m, why := b.o.Policy.choose(now, &b.history, view)
		if why == "" && b.tooLarge(ctx, m.Own) {
			b.history.large[m.Own] = now.Add(b.o.Policy.Stay)
			b.o.Log.Info("hot directory has too many entries to move", "path", m.Path, "ops_per_s", int(m.Rate), "entries", b.o.Policy.Entries)
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

// moveSubtree moves a directory. After a failure, for example at a locked path, the balancer tries again after Rest.
func (b *Balancer) moveSubtree(ctx context.Context, m Move) (how string) {
	start := b.o.Now()
	result := b.o.Whole.Do(ctx, []metadata.Command{{Op: metadata.Delegate, Path: m.Path, Owner: m.To, MaxDepth: -1}})[0]
	end := b.o.Now()
	b.history.rest, b.history.over = end.Add(b.o.Policy.Rest), 0
	log := b.o.Log.With("path", m.Path, "to", m.To, "ops_per_s", int(m.Rate), "here", int(m.Here), "there", int(m.There), "mean", int(m.Mean))
	if result.Err != nil {
		b.updateStatus(func(s *Status) { s.Refused++ })
		log.Info("cannot move a hot directory", "error", result.Err)
		return fmt.Sprintf("%s was not moved to %s: %v", metadata.Quote(m.Path), m.To, result.Err)
	}
	b.updateStatus(func(s *Status) { s.Moves++ })
	log.Info("moved a hot directory", "took", end.Sub(start))
	return fmt.Sprintf("moved %s with %.0f operations/s to %s: %.0f here, %.0f there, %.0f on average", metadata.Quote(m.Path),
		m.Rate, m.To, m.Here, m.There, m.Mean)
}

func (b *Balancer) tooLarge(ctx context.Context, own string) bool {
	page := metadata.Command{Op: metadata.Find, Path: own, Across: true, Limit: metadata.MaxLimit, MaxDepth: -1}
	for n := 0; n <= b.o.Policy.Entries; {
		found := b.o.Own.Do(ctx, []metadata.Command{page})[0]
		n += len(found.Entries)
		if found.Err != nil || found.Next == "" {
			return n > b.o.Policy.Entries // the move itself refuses a missing directory
		}
		page.After = found.Next
	}
	return true
}
