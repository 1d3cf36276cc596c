package balancer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Reasons for which a request is turned away.
var (
	errFull   = errors.New("the queue is full")
	errWaited = errors.New("it waited too long in the queue")
)

// limiter lets a number of requests through at once and has a number of others wait in
// their order. More is turned away at once: a queue without an end answers nobody in time.
type limiter struct {
	slots   chan struct{}
	waiting atomic.Int64
	queue   int64
	wait    time.Duration
}

func newLimiter(limit, queue int, wait time.Duration) *limiter {
	return &limiter{slots: make(chan struct{}, limit), queue: int64(queue), wait: wait}
}

// enter returns when the request may go on; leave has to follow then.
func (l *limiter) enter(ctx context.Context) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	if l.waiting.Add(1) > l.queue {
		l.waiting.Add(-1)
		return errFull
	}
	defer l.waiting.Add(-1)
	timer := time.NewTimer(l.wait)
	defer timer.Stop()
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return errWaited
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *limiter) leave() { <-l.slots }
