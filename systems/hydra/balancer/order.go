package balancer

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// candidate is a backend as it was when an order was made.
type candidate struct {
	*backend
	seen view
	cost float64
}

// alike is by how much distances may differ without counting for much. With it, and by
// the chance that is in the costs, backends that are about as near share the requests.
const alike = time.Millisecond

// order is in which order a request tries the backends. Those of this cloud come before
// the others', and within a cloud what counts is the distance times the requests that are
// there already; a leader that is near comes first for writes. Where none is usable all
// are tried: the checks may be wrong.
func (p *pool) order(write bool) []*backend {
	all := make([]candidate, 0, len(p.backends))
	var leader *backend
	var term uint64
	for _, b := range p.backends {
		c := candidate{backend: b, seen: b.see()}
		if !c.seen.usable() {
			continue
		}
		c.cost = float64(c.seen.distance+alike) * float64(b.inflight.Load()+1) * (1 + rand.Float64()/2)
		if c.seen.leads && (leader == nil || c.seen.term > term) && (b.local || c.seen.distance <= p.config.Near) {
			leader, term = b, c.seen.term
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return p.shuffled()
	}
	slices.SortFunc(all, func(x, y candidate) int {
		switch {
		case write && x.backend == leader:
			return -1
		case write && y.backend == leader:
			return 1
		case x.local != y.local:
			if x.local {
				return -1
			}
			return 1
		}
		return cmp.Compare(x.cost, y.cost)
	})
	order := make([]*backend, len(all))
	for i, c := range all {
		order[i] = c.backend
	}
	return order
}

func (p *pool) shuffled() []*backend {
	order := slices.Clone(p.backends)
	rand.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	return order
}

// ready is whether the pool can serve: something is usable and, of members, one that knows
// a leader, without which no write gets through.
func (p *pool) ready() bool {
	for _, b := range p.backends {
		if v := b.see(); v.usable() && (p.kind != Members || v.knows) {
			return true
		}
	}
	return false
}
