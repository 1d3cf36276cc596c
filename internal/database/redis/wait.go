package redis

import (
	"fmt"
	"strconv"
	"time"

	"skerry/internal/load"
)

// classUnreplicated is a write that the master has and too few replicas acknowledged.
const classUnreplicated = "unreplicated"

// queueWrite is add for a write. Where replicas must have it, WAIT follows in the same
// request: it answers when they have what the connection has written, or says how many
// have when its time is up. Redis has written by then either way.
func (c *client) queueWrite(slot, lo int) {
	c.queueCall(slot, lo)
	c.calls[len(c.calls)-1].acked = c.wait > 0
}

func (c *client) appendWait(out []byte, deadline time.Time) []byte {
	ms := max(time.Until(deadline).Milliseconds(), 1)
	return appendCommand(out, "WAIT", strconv.Itoa(c.wait), strconv.FormatInt(ms, 10))
}

// checkWait is nil when the answer to WAIT says that enough replicas have the write.
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
