package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
)

// client belongs to one worker. It has a lane to each node that it has used.
type client struct {
	*router
	release func() error
	lanes   []*lane // by the router's number
	req     []byte  // the operation's requests
	calls   []call
	touched []*lane   // lanes with calls outstanding
	now     time.Time // when the operation began
	names   database.FieldNames
	scanner scanner
}

var _ load.Client = (*client)(nil)

type call struct {
	slot   int
	lo, hi int // its request: c.req[lo:hi]
	node   int32
	asking bool // after an ASK redirect
	detour bool // sent to another node after a refused connection
	acked  bool // followed by WAIT: replicas must have it
	done   bool
	lane   *lane
	at     int // its reply begins at lane.in[at]
	err    error
}

func (c *client) beginOperation(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		class := database.ClassCanceled
		if errors.Is(err, context.DeadlineExceeded) {
			class = database.ClassTimeout
		}
		return time.Time{}, load.Failed(class, "", err)
	}
	for _, l := range c.lanes {
		if l != nil {
			l.reset()
		}
	}
	c.req, c.calls, c.now = c.req[:0], c.calls[:0], time.Now()
	if deadline, ok := ctx.Deadline(); ok {
		return deadline, nil
	}
	return c.now.Add(c.timeout), nil
}

func (c *client) queueCall(slot, lo int) {
	c.calls = append(c.calls, call{slot: slot, lo: lo, hi: len(c.req), node: -1})
}

// runCalls executes the calls from index first on and follows redirects. Calls to one node share a write. Each
// call then has a reply or an error.
func (c *client) runCalls(ctx context.Context, deadline time.Time, first int) {
	for round := 0; ; round++ {
		if !c.sendCalls(ctx, deadline, first) {
			return
		}
		again := c.readReplies(ctx, round < c.redirects)
		if !again {
			return
		}
	}
}

// sendCalls sends every call that is not done. It returns false if nothing was sent.
func (c *client) sendCalls(ctx context.Context, deadline time.Time, first int) bool {
	c.touched = c.touched[:0]
	for i := first; i < len(c.calls); i++ {
		k := &c.calls[i]
		if k.done {
			continue
		}
		if k.node < 0 {
			k.node = c.owner[k.slot].Load()
		}
		l, err := c.openLane(ctx, k.node, deadline)
		if other := c.alternativeNode(k, err); other >= 0 {
			c.requestRefresh()
			k.node, k.asking, k.detour = other, false, true
			l, err = c.openLane(ctx, other, deadline)
		}
		if err != nil {
			k.fail(err)
			c.requestRefresh()
			continue
		}
		if len(l.waiting) == 0 {
			c.touched = append(c.touched, l)
		}
		if k.asking {
			l.out = append(l.out, "*1\r\n$6\r\nASKING\r\n"...)
		}
		l.out = append(l.out, c.req[k.lo:k.hi]...)
		if k.acked {
			l.out = c.appendWait(l.out, deadline)
		}
		l.waiting = append(l.waiting, i)
		k.lane = l
	}
	for _, l := range c.touched {
		err := l.conn.SetDeadline(deadline)
		if err != nil {
			err = load.Failed(database.ErrorClass(err), l.addr, err)
		} else {
			if len(c.touched) == 1 && l.raw != nil {
				err = l.exchange()
			} else { // all are sent to before any is waited for
				err = l.send(l.out)
			}
		}
		l.out = l.out[:0]
		if err != nil {
			c.failCalls(l, l.waiting, err)
			l.waiting = l.waiting[:0]
		}
	}
	return len(c.touched) > 0
}

// alternativeNode returns a node for a call whose node refused the connection, or -1. Nothing
// was sent, so resending is safe, and any other node redirects the call to the owner. A call
// takes one detour only: if the owner refuses as well, it is down.
func (c *client) alternativeNode(k *call, err error) int32 {
	var e *load.OpError
	if k.detour || c.alone || !errors.As(err, &e) || e.Class != database.ClassRefused {
		return -1
	}
	return c.otherNode(k.node)
}

func (c *client) readReplies(ctx context.Context, follow bool) (again bool) {
	defer c.watchCancel(ctx)()
	for _, l := range c.touched {
		for n, i := range l.waiting {
			k := &c.calls[i]
			err := error(nil)
			if k.asking {
				err = l.skipReply() // the reply to ASKING; a failure shows in the next reply
			}
			k.at = l.at
			if err == nil {
				err = l.skipReply()
			}
			acks := l.at
			if err == nil && k.acked {
				err = l.skipReply()
			}
			if err != nil {
				if errors.Is(ctx.Err(), context.Canceled) {
					err = load.Unknown(database.ClassCanceled, l.addr, ctx.Err())
				}
				c.failCalls(l, l.waiting[n:], err)
				break
			}
			if l.in[k.at] != kindError {
				k.done = true
				if k.acked {
					k.err = c.checkWait(l, acks)
				}
				continue
			}
			again = c.handleError(k, follow) || again
		}
		l.waiting = l.waiting[:0]
	}
	return again
}

func (c *client) handleError(k *call, follow bool) bool {
	e, _, _, _ := parseElement(k.lane.in, k.at)
	node, ask, moved := c.followRedirect(e.text, k.lane.addr)
	switch {
	case moved && follow:
		k.node, k.asking = node, ask
		return true
	case moved:
		k.fail(load.Failed(classMoved, k.lane.addr, fmt.Errorf("more than %d redirects: %s", c.redirects, e.text)))
	default:
		k.fail(classifyReply(k.lane.addr, e.text))
		c.requestRefresh() // the cluster may have changed
	}
	return false
}

// watchCancel interrupts reads when ctx ends, if ctx has no deadline.
func (c *client) watchCancel(ctx context.Context) (stop func()) {
	if _, bounded := ctx.Deadline(); bounded || ctx.Done() == nil {
		return func() {}
	}
	var conns []interface{ SetDeadline(time.Time) error }
	for _, l := range c.touched {
		if l.conn != nil {
			conns = append(conns, l.conn)
		}
	}
	undo := context.AfterFunc(ctx, func() {
		for _, conn := range conns {
			_ = conn.SetDeadline(time.Unix(1, 0)) // closed already: as good
		}
	})
	return func() { undo() }
}

func (c *client) failCalls(l *lane, waiting []int, err error) {
	for _, i := range waiting {
		c.calls[i].fail(err)
	}
	l.close()
	c.requestRefresh()
}

func (k *call) fail(err error) { k.err, k.done = err, true }

func (c *client) openLane(ctx context.Context, node int32, deadline time.Time) (*lane, error) {
	if node < 0 {
		return nil, load.Failed("clusterdown", "", errors.New("no node is known to serve the slot"))
	}
	for int(node) >= len(c.lanes) {
		c.lanes = append(c.lanes, nil)
	}
	l := c.lanes[node]
	if l == nil {
		l = &lane{addr: (*c.nodes.Load())[node]}
		c.lanes[node] = l
	}
	if l.conn != nil && c.now.Sub(l.used) > idleAfter && !l.alive() {
		l.close()
	}
	l.used = c.now
	if l.conn == nil {
		if err := l.dial(ctx, c.router, deadline); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (c *client) Close() error {
	for _, l := range c.lanes {
		if l != nil {
			l.close()
		}
	}
	if c.release == nil {
		return nil
	}
	return c.release()
}
