package routebench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"skerry/internal/evidence/stats"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
)

// The cloud on which moves are measured. Round trips:
//
//	x ──────── direct 100 ms ──────── z
//	└── first 40 ms ── y ── last 40 ms ┘
const (
	direct, first, last = "direct", "first", "last"

	directRTT = 100 * time.Millisecond
	hopRTT    = 40 * time.Millisecond
	grownRTT  = 160 * time.Millisecond // of last, while it is the longer way
	// nearRTT is by how much direct is longer than the way over y while the two are nearly
	// equal, nearJitter the spread of every link then.
	nearRTT    = time.Millisecond
	nearJitter = 250 * time.Microsecond
	nearFor    = 30 * time.Second
	// glance is how often it is looked which way packets take: the resolution of a move.
	glance = 100 * time.Millisecond
)

// Moves is how routing follows latency that changes while no link fails.
type Moves struct {
	// Away are the times from the moment at which the way in use becomes longer than
	// another one to packets taking that, Back those from the moment at which it is the
	// shorter one again.
	Away []Move `json:"away"`
	Back []Move `json:"back"`
	// Near is what happened between two ways that are nearly equally long.
	Near Near `json:"near"`
}

// Move is one change of way.
type Move struct {
	Moved bool    `json:"moved"`
	MS    float64 `json:"ms"`
}

// Near counts moves between two ways that differ by little.
type Near struct {
	DifferenceMS float64 `json:"difference_ms"` // of the round trips
	JitterMS     float64 `json:"jitter_ms"`     // standard deviation of each link, one way
	Seconds      float64 `json:"seconds"`
	Moves        int     `json:"moves"`
}

// triangle is the cloud of moves.
func triangle(over topology.Overlay) topology.Topology {
	t := topology.Topology{Name: "moves", Overlay: over}
	for _, n := range []string{"x", "y", "z"} {
		t.Sites = append(t.Sites, topology.Site{Name: n})
		t.Nodes = append(t.Nodes, topology.Node{Name: n, Site: n, Role: topology.Data})
	}
	wire := func(id, a, b string, rtt time.Duration) {
		q := link.Quality{Latency: rtt / 2}
		t.Links = append(t.Links, topology.Link{ID: id, A: a, B: b, AB: q, BA: q})
	}
	wire(direct, "x", "z", directRTT)
	wire(first, "x", "y", hopRTT)
	wire(last, "y", "z", hopRTT)
	return t
}

// moves measures them on an overlay.
func (o Options) moves(ctx context.Context, over topology.Overlay) (r Moves, err error) {
	err = o.within(ctx, triangle(over), func(l *lab.Lab, _ time.Duration) error {
		m := &mesh{Options: o, lab: l}
		if err := m.settle(ctx); err != nil {
			return err
		}
		nodes := l.Inside()
		x, z := nodes[0], nodes[2]
		calls, err := startEchoes(ctx, x, z)
		if err != nil {
			return err
		}
		r, err = m.follow(ctx, x)
		if stop := calls.stop(); err == nil {
			err = stop
		}
		return err
	})
	return r, err
}

// follow changes latencies under calls that leave a node, and looks where they go.
func (m *mesh) follow(ctx context.Context, from host.Host) (r Moves, err error) {
	if _, err := m.reach(ctx, from, first); err != nil {
		return r, err
	}
	for i := range m.Moves {
		m.Progress(fmt.Sprintf("latency grows and shrinks, %d of %d", i+1, m.Moves))
		for _, s := range []struct {
			rtt  time.Duration
			want string
			to   *[]Move
		}{{grownRTT, direct, &r.Away}, {hopRTT, first, &r.Back}} {
			if err := m.lengthen(ctx, 0, map[string]time.Duration{last: s.rtt}); err != nil {
				return r, err
			}
			moved, err := m.reach(ctx, from, s.want)
			if err != nil {
				return r, err
			}
			*s.to = append(*s.to, moved)
			if err := m.settle(ctx); err != nil {
				return r, err
			}
		}
	}
	m.Progress("two ways nearly equal")
	r.Near = Near{DifferenceMS: milliseconds(nearRTT), JitterMS: milliseconds(nearJitter), Seconds: nearFor.Seconds()}
	err = m.lengthen(ctx, nearJitter, map[string]time.Duration{direct: 2*hopRTT + nearRTT, first: hopRTT, last: hopRTT})
	if err != nil {
		return r, err
	}
	r.Near.Moves, err = m.count(ctx, from, nearFor)
	return r, err
}

// lengthen sets round trips and the spread of links.
func (m *mesh) lengthen(ctx context.Context, jitter time.Duration, rtts map[string]time.Duration) error {
	var changes []link.Change
	for id, rtt := range rtts {
		q := link.Quality{Latency: rtt / 2, Jitter: jitter}
		changes = append(changes, link.Change{ID: id, AB: &q, BA: &q})
	}
	return m.lab.Set(ctx, changes)
}

// reach waits until calls leave a node by a link.
func (m *mesh) reach(ctx context.Context, from host.Host, want string) (Move, error) {
	began := time.Now()
	for time.Since(began) < m.Heal {
		id, err := m.usedFor(ctx, from, glance)
		if err != nil {
			return Move{}, err
		}
		if id == want {
			return Move{Moved: true, MS: milliseconds(time.Since(began))}, nil
		}
	}
	return Move{}, nil
}

// count is how often calls that leave a node change from one link to another.
func (m *mesh) count(ctx context.Context, from host.Host, d time.Duration) (moves int, err error) {
	last := ""
	for began := time.Now(); time.Since(began) < d; {
		id, err := m.usedFor(ctx, from, glance)
		if err != nil {
			return moves, err
		}
		if id == "" {
			continue
		}
		if last != "" && id != last {
			moves++
		}
		last = id
	}
	return moves, nil
}

// moved summarises: the median and the longest of those that moved, in ms, and how many
// did not.
func moved(all []Move) (median, most float64, never int) {
	var ms []float64
	for _, m := range all {
		if m.Moved {
			ms = append(ms, m.MS)
		} else {
			never++
		}
	}
	if len(ms) == 0 {
		return 0, 0, never
	}
	return stats.Median(ms), slices.Max(ms), never
}
