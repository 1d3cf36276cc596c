// Package rebalance moves hot subtrees between the servers that share a tree, by their
// operations per second.
//
// A balancer runs at each server, and gives away only. In every round it looks at the load
// of all (View), and chooses at most one directory of its own to go to the server that has
// least to do (Policy.choose). What keeps subtrees from going to and fro is said at Policy.
package rebalance

import (
	"errors"
	"fmt"
	"time"

	"skerry/systems/metadata"
	"skerry/systems/metadata/heat"
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
	Load heat.Load
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
