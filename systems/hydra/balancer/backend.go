package balancer

import (
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// backend is a server as the balancer knows it.
type backend struct {
	url   *url.URL
	cloud string
	local bool // it is of the balancer's own cloud

	inflight atomic.Int64

	mu sync.Mutex
	view
	row int // checks in a row that said the opposite of up
}

// view is what is known of a backend.
type view struct {
	// up by the checks; draining by its own word; spare has no database (a witness).
	up, draining, spare bool
	// leads is whether it says that it leads, knows whether it knows a leader, term that of
	// which it says so: of two that both say so, the older one's word is out of date.
	leads, knows bool
	term         uint64
	// distance is the moving average of what a check takes.
	distance time.Duration
	problem  string
}

// weight is how much of an average the newest value makes up.
const weight = 0.3

func (b *backend) see() view {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.view
}

// heard takes what a check brought; err is how it failed. It tells whether the backend
// went up or down by that.
func (b *backend) heard(v view, took time.Duration, err error, fall, rise int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.problem = err.Error()
		b.leads = false
	} else {
		up, old := b.up, b.distance
		b.view = v
		b.up = up
		b.distance = took
		if old > 0 {
			b.distance = time.Duration(weight*float64(took) + (1-weight)*float64(old))
		}
	}
	if (err == nil) == b.up {
		b.row = 0
		return false
	}
	b.row++
	if err == nil && b.row < rise || err != nil && b.row < fall {
		return false
	}
	b.row, b.up = 0, !b.up
	return true
}

// refused takes that nothing listens where the backend should: no check has to fail first.
func (b *backend) refused(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up, b.leads, b.row, b.problem = false, false, 0, why.Error()
}

// usable is whether requests may go there.
func (v view) usable() bool { return v.up && !v.draining && !v.spare }
