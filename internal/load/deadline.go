package load

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// opContext is the context of a worker's operations, one after the other: a deadline
// that moves with every operation at the cost of one atomic store, where a
// context.WithTimeout would make a timer and two objects each time. The watchdog
// expires it; an expired one is thrown away.
type opContext struct {
	context.Context // for values
	base            time.Time
	done            chan struct{}
	// doing is the operation in flight. It is written before state and never after
	// it expired.
	doing series
	// state is the deadline of the operation in flight in nanoseconds since base,
	// its negative when that operation has ended, or expired.
	state atomic.Int64
	// at is when it expired, in nanoseconds since base.
	at atomic.Int64
}

const expired = math.MinInt64

func newOpContext(parent context.Context, base time.Time) *opContext {
	return &opContext{Context: context.WithoutCancel(parent), base: base, done: make(chan struct{})}
}

// begin arms the context for an operation.
func (c *opContext) begin(s series, deadline time.Duration) {
	c.doing = s
	c.state.Store(int64(deadline))
}

// end disarms it and tells whether it can be used again.
func (c *opContext) end() bool {
	s := c.state.Load()
	return s > 0 && c.state.CompareAndSwap(s, -s)
}

// inFlight tells whether an operation has begun and not ended.
func (c *opContext) inFlight() bool { s := c.state.Load(); return s > 0 || s == expired }

// expire ends the operation in flight if its deadline is before now.
func (c *opContext) expire(now time.Duration) {
	s := c.state.Load()
	if s > 0 && int64(now) > s && c.state.CompareAndSwap(s, expired) {
		c.at.Store(int64(now))
		close(c.done)
	}
}

// overdue is how long ago the operation in flight expired, 0 if it did not.
func (c *opContext) overdue(now time.Duration) time.Duration {
	at := c.at.Load()
	if at == 0 || c.state.Load() != expired {
		return 0
	}
	return now - time.Duration(at)
}

// Deadline is that of the operation in flight.
func (c *opContext) Deadline() (time.Time, bool) {
	s := c.state.Load()
	if s == expired {
		return c.base, true // long ago
	}
	return c.base.Add(time.Duration(max(s, -s))), true
}

func (c *opContext) Done() <-chan struct{} { return c.done }

func (c *opContext) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
