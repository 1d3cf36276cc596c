package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// A request may legitimately take long: it can wait for a lock or for a majority. It is therefore not limited by time. It
// ends only if its replica does not answer pings either: the replica is stopped (SIGSTOP, swapping), or its packets are
// lost. A dead process refuses connections and needs no ping.
//
//	request ── pingAfter ──► ping ── patience ──► ping ── patience ──► hung
//
// patience is derived from round trips like TCP's retransmission timeout (RFC 6298), with a minimum for busy machines.
const (
	// pingAfter is the silence after which a replica is pinged, and the time for which a hung replica is not used.
	pingAfter      = 500 * time.Millisecond
	minPingTimeout = time.Second
	// maxPings is the number of unanswered pings after which a replica counts as hung.
	maxPings = 2
)

// ErrHung means that a replica accepted connections but does not answer.
var ErrHung = errors.New("replica does not answer requests or pings")

type replica struct {
	base string
	turn chan struct{} // held while pinging

	mu         sync.Mutex
	srtt, rttv time.Duration // smoothed round trip and its variation; 0: no answer yet
	heard      time.Time     // last answer
	hung       error         // result of the probe at checked; nil if the replica answers
	checked    time.Time
}

func newReplica(base string) *replica { return &replica{base: base, turn: make(chan struct{}, 1)} }

// recordAnswer records an answer and its duration. A duration above pingAfter says nothing about the network.
func (r *replica) recordAnswer(took, pingAfter time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard, r.hung = time.Now(), nil
	switch {
	case took > pingAfter && r.srtt > 0:
	case r.srtt == 0:
		r.srtt, r.rttv = took, took/2
	default:
		r.rttv += ((r.srtt - took).Abs() - r.rttv) / 4
		r.srtt += (took - r.srtt) / 8
	}
}

func (r *replica) patience(minTimeout time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(minTimeout, 2*r.srtt+4*r.rttv)
}

// stateSince returns what was learnt about the replica after a moment, if anything.
func (r *replica) stateSince(moment time.Time) (known bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.heard.After(moment):
		return true, nil
	case r.hung != nil && r.checked.After(moment):
		return true, r.hung
	}
	return false, nil
}

func (r *replica) isSuspect() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hung != nil
}

// probe returns nil if the replica answers pings. Of several concurrent callers, one pings.
func (c *Client) probe(ctx context.Context, r *replica, since time.Time) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if known, err := r.stateSince(since); known {
		return err
	}
	var err error
	for range maxPings {
		if err = c.ping(ctx, r); err == nil || ctx.Err() != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hung, r.checked = fmt.Errorf("%s: %w: %w", r.base, ErrHung, err), time.Now()
	return r.hung
}

func (c *Client) ping(ctx context.Context, r *replica) error {
	ctx, cancel := context.WithTimeout(ctx, r.patience(c.minPingTimeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, r.base+"/", http.NoBody)
	if err != nil {
		return err
	}
	start := time.Now()
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	r.recordAnswer(time.Since(start), c.pingAfter)
	return answer.Body.Close()
}

// guardRequest returns a context for a request that ends when the replica is found hung. sent reports whether the request
// got a connection. release must be called when the request has ended.
func (c *Client) guardRequest(ctx context.Context, r *replica) (_ context.Context, sent *atomic.Bool, release func()) {
	sent = new(atomic.Bool)
	ctx, cancel := context.WithCancelCause(ctx)
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	var watching sync.WaitGroup
	watching.Add(1)
	timer := time.AfterFunc(c.pingAfter, func() {
		defer watching.Done()
		for ctx.Err() == nil {
			if err := c.probe(ctx, r, time.Now().Add(-c.pingAfter)); errors.Is(err, ErrHung) {
				cancel(err)
				return
			}
			again := time.NewTimer(c.pingAfter)
			select {
			case <-again.C:
			case <-ctx.Done():
			}
			again.Stop()
		}
	})
	return traced, sent, func() {
		cancel(nil)
		if timer.Stop() {
			watching.Done()
		}
		watching.Wait()
	}
}
