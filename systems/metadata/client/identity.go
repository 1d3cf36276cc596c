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

// A change that a replica does not answer is asked for again, of another: it has an identity, and
// whoever logs it first remembers what it came to. A client of one server has nobody else to ask,
// and gives none.

// identities are a client's.
type identities struct {
	base string
	next atomic.Uint64

	mu   sync.Mutex
	seen metadata.Seen
}

func newIdentities() *identities {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return &identities{base: hex.EncodeToString(b[:]), seen: make(metadata.Seen)}
}

// newIdentity is what those of a request's changes begin with, "" for none.
func (c *Client) newIdentity() string {
	if len(c.currentReplicas()) == 1 {
		return ""
	}
	return c.ids.base + "/" + strconv.FormatUint(c.ids.next.Add(1), 10)
}

// forwardedSeen tells whether changes are passed on for another client, whose they stay, and how far the
// logs were before they were first asked for.
func (c *Client) forwardedSeen(ctx context.Context, commands []metadata.Command) (bool, metadata.Seen) {
	if slices.ContainsFunc(commands, func(c metadata.Command) bool { return c.Identity != "" }) {
		return true, metadata.RequestFrom(ctx).Seen
	}
	return false, c.Seen()
}

// Seen is how far the servers' logs are, as far as they have told.
func (c *Client) Seen() metadata.Seen {
	c.ids.mu.Lock()
	defer c.ids.mu.Unlock()
	all := make(metadata.Seen)
	all.Add(c.ids.seen)
	return all
}

// recordSeen takes what an answer says of the logs.
func (c *Client) recordSeen(h http.Header) {
	if text := h.Get(protocol.SeenHeader); text != "" {
		c.ids.mu.Lock()
		defer c.ids.mu.Unlock()
		c.ids.seen.Add(metadata.ParseSeen(text))
	}
}

// hasStale tells whether servers refuse changes since this client has heard nothing of them for long.
func hasStale(results []metadata.Result) bool {
	return slices.ContainsFunc(results, func(r metadata.Result) bool { return errors.Is(r.Err, metadata.ErrStale) })
}
