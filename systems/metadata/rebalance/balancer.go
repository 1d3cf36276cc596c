// Package rebalance moves hot subtrees between the servers that share a tree, by their
// operations per second.
//
// A balancer runs at each server, and gives away only. In every round it looks at the load
// of all (View), and chooses at most one directory of its own to go to the server that has
// least to do (Policy.choose). What keeps subtrees from going to and fro is said at Policy.
package rebalance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"skerry/systems/metadata"
)

// Policy is when a server gives something away. Zero fields mean the defaults.
type Policy struct {
	// Interval is from one round to the next; 10 s.
	Interval time.Duration
	// Factor is how many times the servers' mean a server must have; 1.25.
	Factor float64
	// Floor is how many operations/s it must have, for a move to be worth it; 1,000.
	Floor float64
	// Rounds is in how many rounds behind each other it must have both; 3.
	Rounds int
	// Margin is by what part of this server's operations/s the one that gets a directory must
	// have less, with it, than this one has without the move; 0.1.
	Margin float64
	// Rest is how long a server gives nothing away behind a move, until the counts are of
	// what is left; 1 min.
	Rest time.Duration
	// Stay is how long a subtree stays where it came to, with all in it; 10 min.
	Stay time.Duration
	// Entries is how many entries a subtree may have, since to copy them is work for both
	// servers; 100,000.
	Entries int
}

// WithDefaults is the policy with defaults for what is zero.
func (p Policy) WithDefaults() Policy {
	def := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	def(&p.Interval, 10*time.Second)
	def(&p.Rest, time.Minute)
	def(&p.Stay, 10*time.Minute)
	if p.Factor == 0 {
		p.Factor = 1.25
	}
	if p.Floor == 0 {
		p.Floor = 1000
	}
	if p.Rounds == 0 {
		p.Rounds = 3
	}
	if p.Margin == 0 {
		p.Margin = 0.1
	}
	if p.Entries == 0 {
		p.Entries = 100_000
	}
	return p
}

// ErrPolicy marks a policy that cannot be.
var ErrPolicy = errors.New("not a policy to balance by")

// Check tells what is wrong with a policy, before its defaults.
func (p Policy) Check() error {
	switch {
	case p.Interval < 0, p.Rest < 0, p.Stay < 0, p.Floor < 0, p.Rounds < 0, p.Entries < 0:
		return fmt.Errorf("%w: a negative number", ErrPolicy)
	case p.Factor != 0 && !(p.Factor >= 1):
		return fmt.Errorf("%w: a factor of %v is below 1, the mean itself", ErrPolicy, p.Factor)
	case !(p.Margin >= 0 && p.Margin < 1):
		return fmt.Errorf("%w: a margin of %v is not between 0 and 1", ErrPolicy, p.Margin)
	}
	return nil
}

// ServerLoad is what one says about itself.
type ServerLoad struct {
	Load Load
	// Subtrees are the virtual directories of its own tree, and their owners.
	Subtrees map[string]string
}

// View is the servers that answered, at about one moment.
type View struct {
	Self string // the name of the one that looks
	Root string // of the one that has "/"
	// Servers that share the tree, by name; those out of reach are not there.
	Servers map[string]ServerLoad
}

// Mean is the servers' mean load, in operations/s.
func (v View) Mean() float64 {
	sum := 0.0
	for _, s := range v.Servers {
		sum += s.Load.Rate
	}
	return sum / float64(max(len(v.Servers), 1))
}

// leastLoaded is the server that has least to do, of several the first by name.
func (v View) leastLoaded() (name string, rate float64) {
	for n, s := range v.Servers {
		if name == "" || s.Load.Rate < rate || s.Load.Rate == rate && n < name {
			name, rate = n, s.Load.Rate
		}
	}
	return name, rate
}

// mountPoints has where each subtree hangs: the server and the path of its virtual directory,
// by owner.
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

// globalPath is a path of a server's own tree as one of the whole tree; ok is false where a
// server on the way is out of reach, and for "/".
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
	return "", false // virtual directories that stand for each other
}

// splitSubtree parts a path of a server's own tree into the directory of the subtree that it is
// in, "" for none, and the rest.
func splitSubtree(own string) (sub, rest string) {
	for at := own; at != "/"; at, _ = metadata.Split(at) {
		if s, ok := metadata.ParseBase(at); ok && s.Base() == at {
			return at, own[len(at):]
		}
	}
	return "", own
}

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
