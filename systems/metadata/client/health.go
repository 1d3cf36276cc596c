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

// A request may rightly take long: it waits for a lock, or for a majority. So it is not
// given up by the clock, but when its replica does not answer a ping either: one that is
// stopped (SIGSTOP, a machine that swaps), or to which packets are lost. A process that is
// dead refuses connections, which needs no ping.
//
//	request ──── quiet ────► ping ── patience ──► ping ── patience ──► hung
//
// patience is derived from round trips, as TCP's retransmission timeout is (RFC 6298), with
// a floor for machines that are busy.
const (
	// quiet is how long a replica may be silent before it is pinged, and how long one that
	// was found hung is not asked at all.
	pingAfter = 500 * time.Millisecond
	// floor is the least patience for a ping.
	minPingTimeout = time.Second
	// pings is how many go without an answer before a replica counts as hung.
	maxPings = 2
)

// ErrHung means a replica that takes connections or once did, and does not answer.
var ErrHung = errors.New("it does not answer, pings neither")

// replica is one address that a client asks.
type replica struct {
	base string
	turn chan struct{} // held by who pings

	mu         sync.Mutex
	srtt, rttv time.Duration // smoothed round trip and its variation; 0: nothing was heard
	heard      time.Time     // the last answer
	hung       error         // what was found at checked, nil for a replica that answers
	checked    time.Time
}

func newReplica(base string) *replica { return &replica{base: base, turn: make(chan struct{}, 1)} }

// recordAnswer notes an answer that took so long. What took longer than quiet says nothing
// about the way.
func (r *replica) recordAnswer(took, quiet time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard, r.hung = time.Now(), nil
	switch {
	case took > quiet && r.srtt > 0:
	case r.srtt == 0:
		r.srtt, r.rttv = took, took/2
	default:
		r.rttv += ((r.srtt - took).Abs() - r.rttv) / 4
		r.srtt += (took - r.srtt) / 8
	}
}

// patience is how long a ping is waited for: it may have to connect first.
func (r *replica) patience(floor time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(floor, 2*r.srtt+4*r.rttv)
}

// stateSince tells what was found out about the replica after a moment, if anything.
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

// isSuspect tells whether the replica must be pinged before it is asked.
func (r *replica) isSuspect() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hung != nil
}

// probe returns nil where the replica answers at all. Of many who ask at once, one pings.
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

// ping asks for what a server answers whatever its tree is waiting for.
func (c *Client) ping(ctx context.Context, r *replica) error {
	ctx, cancel := context.WithTimeout(ctx, r.patience(c.floor))
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
	r.recordAnswer(time.Since(start), c.quiet)
	return answer.Body.Close()
}

// guardRequest is a context of a request, which ends when the replica is found hung. sent tells
// whether the request had a connection by then; release must be called when it has ended.
func (c *Client) guardRequest(ctx context.Context, r *replica) (_ context.Context, sent *atomic.Bool, release func()) {
	sent = new(atomic.Bool)
	ctx, cancel := context.WithCancelCause(ctx)
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	var watching sync.WaitGroup
	watching.Add(1)
	timer := time.AfterFunc(c.quiet, func() {
		defer watching.Done()
		for ctx.Err() == nil {
			if err := c.probe(ctx, r, time.Now().Add(-c.quiet)); errors.Is(err, ErrHung) {
				cancel(err)
				return
			}
			again := time.NewTimer(c.quiet)
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
