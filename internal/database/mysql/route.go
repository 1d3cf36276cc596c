package mysql

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/load"
)

// AnyMember is the primary's name if every member accepts writes.
const AnyMember = "*"

// Discover queries which members serve (host:port) and which one accepts writes: AnyMember if all do, an error if
// none does now.
type Discover func(ask func(query string) ([][]string, error)) (members []string, primary string, err error)

const (
	// pings is the number of round trips per distance measurement.
	pings = 2
	// near is the extra distance at which a member still counts as nearest.
	near = time.Millisecond
	// restless is the least time between attempts at a failed member, and between searches for the primary.
	restless = 100 * time.Millisecond
	// avoided is how long a failed member is skipped if there are others.
	avoided = 2 * time.Second
)

// router is the shared state of the workers: the members, their distances, and the primary.
type router struct {
	settings settings
	login    database.Login
	discover Discover // nil: every member takes writes
	connect  Dial
	workers  atomic.Int64
	// primary is the member that accepts writes, or AnyMember; "" if unknown.
	primary atomic.Pointer[string]

	mu      sync.Mutex
	members []member
	tables  map[string]*table

	searching sync.Mutex
	searched  time.Time // when a search for the primary last ended
}

type member struct {
	addr   string
	rtt    time.Duration
	failed time.Time // when it last refused or lost a connection
}

// newRouter measures the distance of every member. At least one must answer.
func newRouter(ctx context.Context, s settings, discover Discover, connect Dial) (*router, error) {
	login, err := database.ReadLogin(s.access, s.user, s.password)
	if err != nil {
		return nil, err
	}
	r := &router{settings: s, login: login, discover: discover, connect: connect, tables: make(map[string]*table)}
	if connect == nil {
		r.connect = new(net.Dialer).DialContext
	}
	none := ""
	r.primary.Store(&none)
	var all sync.WaitGroup
	hosts := strings.Split(s.hosts, ",")
	found, errs := make([]member, len(hosts)), make([]error, len(hosts))
	for i, addr := range hosts {
		all.Go(func() { found[i], errs[i] = r.measure(ctx, addr) })
	}
	all.Wait()
	if !slices.Contains(errs, nil) {
		return nil, errors.Join(errs...)
	}
	r.members = found
	if s.member == Nearest {
		slices.SortStableFunc(r.members, func(a, b member) int { return int(a.rtt - b.rtt) })
	}
	if discover != nil {
		return r, r.findPrimary(ctx, time.Now().Add(s.timeout))
	}
	return r, nil
}

// measure measures the distance of a member. One that does not answer is far.
func (r *router) measure(ctx context.Context, addr string) (member, error) {
	m := member{addr: addr, rtt: time.Hour, failed: time.Now()}
	l, err := r.dial(ctx, addr, time.Now().Add(r.settings.connect))
	if err != nil {
		return m, err
	}
	defer l.close()
	for range pings {
		began := time.Now()
		if _, err = l.query(ctx, "SELECT 1"); err != nil {
			return m, err
		}
		m.rtt = min(m.rtt, time.Since(began))
	}
	m.failed = time.Time{}
	return m, nil
}

func (r *router) candidates(worker int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	order := slices.Clone(r.members)
	switch r.settings.member {
	case RoundRobin:
		rotateMembers(order, worker)
	case Nearest:
		group := 1
		for group < len(order) && order[group].rtt-order[0].rtt <= near {
			group++
		}
		rotateMembers(order[:group], worker)
	}
	now := time.Now()
	slices.SortStableFunc(order, func(a, b member) int {
		return int(recentlyFailed(a.failed, now)) - int(recentlyFailed(b.failed, now))
	})
	addrs := make([]string, len(order))
	for i, m := range order {
		addrs[i] = m.addr
	}
	return addrs
}

// recentlyFailed returns 1 for a member to skip, for sorting.
func recentlyFailed(failed, now time.Time) int8 {
	if now.Sub(failed) < avoided {
		return 1
	}
	return 0
}

func rotateMembers(m []member, by int) {
	by %= len(m)
	copy(m, append(slices.Clone(m[by:]), m[:by]...))
}

func (r *router) markFailed(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.members {
		if r.members[i].addr == addr {
			r.members[i].failed = time.Now()
		}
	}
}

func (r *router) markServing(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.members {
		if r.members[i].addr == addr {
			r.members[i].failed = time.Time{}
		}
	}
}

func (r *router) forgetPrimary(addr string) {
	if p := r.primary.Load(); *p == addr {
		none := ""
		r.primary.CompareAndSwap(p, &none)
	}
}

// findPrimary searches the primary. Concurrent searches become one.
func (r *router) findPrimary(ctx context.Context, deadline time.Time) error {
	r.searching.Lock()
	defer r.searching.Unlock()
	if *r.primary.Load() != "" {
		return nil // another worker's search
	}
	if err := waitUntil(ctx, restless-time.Since(r.searched), deadline); err != nil {
		return err
	}
	defer func() { r.searched = time.Now() }()
	err := error(nil)
	for _, addr := range r.candidates(0) {
		found, primary, e := r.queryView(ctx, addr, deadline)
		if e == nil {
			r.addMembers(found)
			r.primary.Store(&primary)
			return nil
		}
		err = errors.Join(err, e)
	}
	return load.Failed("no_primary", "", err)
}

func (r *router) queryView(ctx context.Context, addr string, deadline time.Time) ([]string, string, error) {
	if soon := time.Now().Add(r.settings.connect); soon.Before(deadline) {
		deadline = soon
	}
	l, err := r.dial(ctx, addr, deadline)
	if err != nil {
		r.markFailed(addr)
		return nil, "", err
	}
	defer l.close()
	return r.discover(func(query string) ([][]string, error) { return l.query(ctx, query) })
}

func (r *router) addMembers(addrs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range addrs {
		if !slices.ContainsFunc(r.members, func(m member) bool { return m.addr == a }) {
			r.members = append(r.members, member{addr: a, rtt: time.Hour})
		}
	}
}

func waitUntil(ctx context.Context, d time.Duration, deadline time.Time) error {
	if err := linger.For(ctx, min(d, time.Until(deadline))); err != nil {
		return load.Failed("canceled", "", err)
	}
	return nil
}
