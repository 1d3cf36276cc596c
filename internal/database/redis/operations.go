package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"skerry/internal/load"
)

func (c *client) Read(ctx context.Context, _, key string, fields []string, dst []load.Field) ([]load.Field, error) {
	deadline, err := c.beginOperation(ctx)
	if err != nil {
		return dst, err
	}
	appendGet(c, c.prefix+key, fields)
	c.runCalls(ctx, deadline, 0)
	k := &c.calls[0]
	if k.err != nil {
		return dst, k.err
	}
	before := len(dst)
	dst = c.decodeRecord(k, fields, dst)
	if len(dst) == before {
		return dst, load.ErrNotFound
	}
	return dst, nil
}

func appendGet[T string | []byte](c *client, key T, fields []string) {
	lo := len(c.req)
	if len(fields) == 0 {
		c.req = append(c.req, "*2\r\n$7\r\nHGETALL\r\n"...)
		c.req = appendBulk(c.req, key)
	} else {
		c.req = appendArray(c.req, 2+len(fields))
		c.req = append(c.req, "$5\r\nHMGET\r\n"...)
		c.req = appendBulk(c.req, key)
		for _, f := range fields {
			c.req = appendBulk(c.req, f)
		}
	}
	c.queueCall(slotOf(key), lo)
}

// decodeRecord appends the fields in a reply to appendGet; a missing record has none.
func (c *client) decodeRecord(k *call, fields []string, dst []load.Field) []load.Field {
	buf, at := k.lane.in, k.at
	head, at, _, _ := parseElement(buf, at) // complete: skip has read it
	for i := range int(head.n) {
		var e element
		text, next, ok := parseShortBulk(buf, at)
		if ok {
			e.text = text
		} else {
			e, next, _, _ = parseElement(buf, at)
		}
		at = next
		if len(fields) > 0 {
			if e.n >= 0 {
				dst = append(dst, load.Field{Name: fields[i], Value: e.text})
			}
		} else if i%2 == 0 {
			dst = append(dst, load.Field{Name: c.names.String(i/2, e.text)})
		} else {
			dst[len(dst)-1].Value = e.text
		}
	}
	return dst
}

// Update writes fields of a record. Redis creates a missing record.
func (c *client) Update(ctx context.Context, _, key string, values []load.Field) error {
	deadline, err := c.beginOperation(ctx)
	if err != nil {
		return err
	}
	c.appendSet(c.prefix+key, values)
	c.runCalls(ctx, deadline, 0)
	return c.calls[0].err
}

func (c *client) appendSet(key string, values []load.Field) {
	lo := len(c.req)
	c.req = appendArray(c.req, 2+2*len(values))
	c.req = append(c.req, "$4\r\nHSET\r\n"...)
	c.req = appendBulk(c.req, key)
	for _, f := range values {
		c.req = appendBulk(c.req, f.Name)
		c.req = appendBulk(c.req, f.Value)
	}
	c.queueWrite(slotOf(key), lo)
}

// Insert writes a record and its entry in the index, in one round trip.
func (c *client) Insert(ctx context.Context, _, key string, values []load.Field) error {
	deadline, err := c.beginOperation(ctx)
	if err != nil {
		return err
	}
	key = c.prefix + key
	if !c.scan {
		c.appendSet(key, values)
		c.runCalls(ctx, deadline, 0)
		return c.calls[0].err
	}
	c.appendIndex(key, "ZADD")
	c.appendSet(key, values)
	c.runCalls(ctx, deadline, 0)
	return mergeOutcomes(c.calls[1].err, c.calls[0].err)
}

// Delete removes a record and its entry in the index, in one round trip.
func (c *client) Delete(ctx context.Context, _, key string) error {
	deadline, err := c.beginOperation(ctx)
	if err != nil {
		return err
	}
	key = c.prefix + key
	lo := len(c.req)
	c.req = appendCommand(c.req, "DEL", key)
	c.queueWrite(slotOf(key), lo)
	if c.scan {
		c.appendIndex(key, "ZREM")
	}
	c.runCalls(ctx, deadline, 0)
	err = c.calls[0].err
	if err == nil {
		if e, _, _, _ := parseElement(c.calls[0].lane.in, c.calls[0].at); e.n == 0 {
			err = load.ErrNotFound
		}
	}
	if c.scan {
		err = mergeOutcomes(err, c.calls[1].err)
	}
	return err
}

// mergeOutcomes combines the outcomes for a record and its index entry. Scans would miss a record without entry.
func mergeOutcomes(record, index error) error {
	if record != nil || index == nil {
		return record
	}
	var e *load.OpError
	if errors.As(index, &e) {
		return load.Unknown(e.Class, e.Node, e.Err)
	}
	return index
}

// connectAll connects to every node. Unreachable nodes fail only the operations that need them.
func (c *client) connectAll(ctx context.Context) {
	deadline := time.Now().Add(c.timeout)
	nodes := *c.nodes.Load()
	errs := make(chan error, len(nodes))
	lanes := make([]*lane, len(nodes))
	for i, addr := range nodes {
		lanes[i] = &lane{addr: addr}
		go func() { errs <- lanes[i].dial(ctx, c.router, deadline) }()
	}
	for range nodes {
		<-errs // the operation that needs the node reports the error again
	}
	c.lanes = lanes
}

const classUnreplicated = "unreplicated"

// queueWrite queues a write, followed by WAIT if replicas must have it. The master has the write in either case.
func (c *client) queueWrite(slot, lo int) {
	c.queueCall(slot, lo)
	c.calls[len(c.calls)-1].acked = c.wait > 0
}

func (c *client) appendWait(out []byte, deadline time.Time) []byte {
	ms := max(time.Until(deadline).Milliseconds(), 1)
	return appendCommand(out, "WAIT", strconv.Itoa(c.wait), strconv.FormatInt(ms, 10))
}

func (c *client) checkWait(l *lane, at int) error {
	e, _, _, _ := parseElement(l.in, at) // complete: skip has read it
	if e.kind == kindError {
		return load.Unknown(classUnreplicated, l.addr, fmt.Errorf("waiting for replicas: %s", e.text))
	}
	if e.n < int64(c.wait) {
		return load.Unknown(classUnreplicated, l.addr, fmt.Errorf("%d replicas have it, want %d", e.n, c.wait))
	}
	return nil
}
