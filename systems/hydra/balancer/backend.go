package balancer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"skerry/systems/hydra/api"
)

type backend struct {
	url   *url.URL
	cloud string
	local bool // in the balancer's own cloud

	inflight atomic.Int64

	mu sync.Mutex
	view
	streak int // consecutive checks that contradict up
}

type view struct {
	// up follows from checks, draining and witness from the member's status.
	up, draining, witness bool
	// leads and knowsLeader are the member's claims in term. Of two leaders, the one with the lower term is outdated.
	leads, knowsLeader bool
	term               uint64
	// distance is the moving average of a check's duration.
	distance time.Duration
	problem  string
}

const averageWeight = 0.3

func (b *backend) currentView() view {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.view
}

// recordCheck records a check's result, err if it failed. It reports whether the backend went up or down.
func (b *backend) recordCheck(v view, took time.Duration, err error, fall, rise int) bool {
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
			b.distance = time.Duration(averageWeight*float64(took) + (1-averageWeight)*float64(old))
		}
	}
	if (err == nil) == b.up {
		b.streak = 0
		return false
	}
	b.streak++
	if err == nil && b.streak < rise || err != nil && b.streak < fall {
		return false
	}
	b.streak, b.up = 0, !b.up
	return true
}

func (b *backend) markRefused(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up, b.leads, b.streak, b.problem = false, false, 0, why.Error()
}

func (v view) usable() bool { return v.up && !v.draining && !v.witness }

var errUnhealthy = errors.New("unhealthy")

const maxStatus = 1 << 20

func dialer(timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return (&net.Dialer{Timeout: timeout, KeepAlive: 15 * time.Second}).DialContext
}

func (p *pool) watch(ctx context.Context, b *backend, first func()) {
	defer first()
	tick := time.NewTicker(p.config.Interval)
	defer tick.Stop()
	for {
		began := time.Now()
		v, err := p.checkOnce(ctx, b)
		if ctx.Err() != nil {
			return
		}
		if b.recordCheck(v, time.Since(began), err, p.config.Fall, p.config.Rise) {
			if err != nil {
				p.config.Log.Warn("a backend is down", "backend", b.url.Host, "cloud", b.cloud, "error", err)
			} else {
				p.config.Log.Info("a backend is up", "backend", b.url.Host, "cloud", b.cloud)
			}
		}
		first()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *pool) checkOnce(ctx context.Context, b *backend) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.CheckTimeout)
	defer cancel()
	path := "/status"
	if p.kind == Apps {
		path = "/healthz"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url.JoinPath(path).String(), nil)
	if err != nil {
		return view{}, err
	}
	if p.config.Token != "" {
		req.Header.Set("Authorization", "Bearer "+p.config.Token)
	}
	resp, err := p.client.RoundTrip(req)
	if err != nil {
		return view{}, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return view{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return view{}, fmt.Errorf("%w: %s%s answered %s", errUnhealthy, b.url.Host, path, resp.Status)
	}
	if p.kind == Apps {
		return view{}, nil
	}
	var s api.Status
	if err := json.Unmarshal(body, &s); err != nil {
		return view{}, fmt.Errorf("reading the status of %s: %w", b.url.Host, err)
	}
	if s.Problem != "" {
		return view{}, fmt.Errorf("%w: %s", errUnhealthy, s.Problem)
	}
	return view{
		draining: s.Draining, witness: s.Witness, term: s.Term,
		leads:       s.Role == roleLeader || s.Role == roleDirect,
		knowsLeader: s.Leader != "" || s.Role == roleDirect,
	}, nil
}

const (
	roleLeader = "leader"
	roleDirect = "direct"
)

type candidate struct {
	*backend
	seen view
	cost float64
}

// distanceFloor is added to distances, so that requests spread over backends at about the same distance.
const distanceFloor = time.Millisecond

// order returns the backends in the order of attempts. The own cloud's come first; within a cloud the
// cost is distance times requests in flight. A near leader comes first for writes. If no backend is
// usable, all are tried, because the checks may be wrong.
func (p *pool) order(write bool) []*backend {
	all := make([]candidate, 0, len(p.backends))
	var leader *backend
	var term uint64
	for _, b := range p.backends {
		c := candidate{backend: b, seen: b.currentView()}
		if !c.seen.usable() {
			continue
		}
		c.cost = float64(c.seen.distance+distanceFloor) * float64(b.inflight.Load()+1) * (1 + rand.Float64()/2)
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

func (p *pool) ready() bool {
	for _, b := range p.backends {
		if v := b.currentView(); v.usable() && (p.kind != Members || v.knowsLeader) {
			return true
		}
	}
	return false
}
