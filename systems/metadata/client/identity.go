package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"skerry/systems/metadata"
	"skerry/systems/metadata/protocol"
)

// A change without an answer is repeated on another replica. The replica that logs it first remembers its identity and
// its outcome. A client of a single replica never repeats a change, and uses no identities.

type identities struct {
	base string
	next atomic.Uint64

	mu   sync.Mutex
	seen metadata.Seen
}

func newIdentities() *identities {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return &identities{base: hex.EncodeToString(b[:]), seen: make(metadata.Seen)}
}

func (c *Client) newIdentity() string {
	if len(c.currentReplicas()) == 1 {
		return ""
	}
	return c.ids.base + "/" + strconv.FormatUint(c.ids.next.Add(1), 10)
}

// forwardedSeen reports whether forwarded changes have their client's identities, with its log positions.
func (c *Client) forwardedSeen(ctx context.Context, commands []metadata.Command) (bool, metadata.Seen) {
	if slices.ContainsFunc(commands, func(c metadata.Command) bool { return c.Identity != "" }) {
		return true, metadata.RequestFrom(ctx).Seen
	}
	return false, c.Seen()
}

// Seen returns the servers' log positions that the client knows.
func (c *Client) Seen() metadata.Seen {
	c.ids.mu.Lock()
	defer c.ids.mu.Unlock()
	all := make(metadata.Seen)
	all.Add(c.ids.seen)
	return all
}

func (c *Client) recordSeen(h http.Header) {
	if text := h.Get(protocol.SeenHeader); text != "" {
		c.ids.mu.Lock()
		defer c.ids.mu.Unlock()
		c.ids.seen.Add(metadata.ParseSeen(text))
	}
}

func hasStale(results []metadata.Result) bool {
	return slices.ContainsFunc(results, func(r metadata.Result) bool { return errors.Is(r.Err, metadata.ErrStale) })
}
