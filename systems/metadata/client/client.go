// Package client sends commands to a metadata server in the JSON form of its protocol.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/base/dialtls"
	"skerry/systems/metadata"
	"skerry/systems/metadata/protocol"
)

const idleConnections = 64

// ErrAnswer means that the answer does not come from a metadata server.
var ErrAnswer = errors.New("answer does not come from a metadata server")

// Client sends requests to one server or to its replicas. If a replica refuses connections or hangs, the client uses the
// next one from then on, and repeats unanswered requests there. Identities keep repeated changes from being made twice. A
// Client is safe for concurrent use.
type Client struct {
	replicas atomic.Pointer[[]*replica]
	at       atomic.Uint32 // index of the replica in use
	http     *http.Client
	bearer   string // Authorization header, "" for none
	scheme   string // of addresses without one
	own      string // "/own" for the server's own tree
	ids      *identities

	pingAfter, minPingTimeout time.Duration
}

// New returns a client of the server at "127.0.0.1:8080" or a URL. Commas separate the addresses of replicas.
func New(addr string, options ...Option) *Client {
	c := &Client{ids: newIdentities(), pingAfter: pingAfter, minPingTimeout: minPingTimeout, scheme: "http://",
		http: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Minute, DisableCompression: true,
		}}}
	for _, set := range options {
		set(c)
	}
	c.SetAddr(addr)
	return c
}

// SetAddr changes the addresses, in the form that New accepts. Requests in progress are not affected.
func (c *Client) SetAddr(addr string) {
	known := c.currentReplicas()
	var replicas []*replica
	for addr := range strings.SplitSeq(addr, ",") {
		base := c.baseURL(addr)
		if i := slices.IndexFunc(known, func(r *replica) bool { return r.base == base }); i >= 0 {
			replicas = append(replicas, known[i])
			continue
		}
		replicas = append(replicas, newReplica(base))
	}
	c.replicas.Store(&replicas)
}

func (c *Client) currentReplicas() []*replica {
	if all := c.replicas.Load(); all != nil {
		return *all
	}
	return nil
}

// Option configures authentication.
type Option func(*Client)

// Token makes a client send a bearer token; "" means none.
func Token(text string) Option {
	return func(c *Client) {
		if text != "" {
			c.bearer = "Bearer " + text
		}
	}
}

// TLS makes a client use https. config is called for each connection. nil means http.
func TLS(config func() *tls.Config) Option {
	return func(c *Client) {
		if config != nil {
			t := c.http.Transport.(*http.Transport)
			c.scheme, t.DialTLSContext = "https://", dialtls.DialContext(t.DialContext, config)
		}
	}
}

// NewOwn returns a client of the own tree of a server that shares a tree.
func NewOwn(addr string, options ...Option) *Client {
	c := New(addr, options...)
	c.own = "/own"
	return c
}

// SetDialer sets the function that opens connections. It must be called before the first request.
func (c *Client) SetDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	c.http.Transport.(*http.Transport).DialContext = dial
}

func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do runs commands one after another. If no server answers, every result has the same ErrUnavailable.
func (c *Client) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	results, err := c.run(ctx, commands)
	if err != nil {
		err = fmt.Errorf("%w: %w", metadata.ErrUnavailable, err)
		results = make([]metadata.Result, len(commands))
		for i := range results {
			results[i].Err = err
		}
	}
	return results
}

func (c *Client) DoOne(ctx context.Context, command metadata.Command) metadata.Result {
	return c.Do(ctx, []metadata.Command{command})[0]
}

func (c *Client) run(ctx context.Context, commands []metadata.Command) ([]metadata.Result, error) {
	passed, seen := c.forwardedSeen(ctx, commands)
	commands = metadata.AddIdentities(c.newIdentity(), commands)
	results, again, err := c.sendBatch(ctx, commands, seen)
	if err == nil && !again && !passed && hasStale(results) {
		results, _, err = c.sendBatch(ctx, commands, c.Seen()) // nothing was changed, so a new position is safe
	}
	return results, err
}

func (c *Client) sendBatch(ctx context.Context, commands []metadata.Command, seen metadata.Seen) (_ []metadata.Result,
	again bool, err error) {
	batch := protocol.Batch{Commands: make([]protocol.CommandJSON, len(commands))}
	for i, command := range commands {
		batch.Commands[i] = protocol.EncodeCommand(command)
	}
	body, err := json.Marshal(batch)
	if err != nil {
		return nil, false, err
	}
	var answer protocol.Results
	q := request{method: http.MethodPost, path: "/v1" + c.own + "/batch", body: body, seen: seen, again: metadata.RequestFrom(ctx).Again}
	q.reads = !slices.ContainsFunc(commands, func(c metadata.Command) bool { return c.Op.Changes() })
	q.known = !slices.ContainsFunc(commands, func(c metadata.Command) bool { return c.Op.Changes() && c.Identity == "" })
	if err := c.call(ctx, &q, &answer); err != nil {
		return nil, q.again, err
	}
	if len(answer.Results) != len(commands) {
		return nil, q.again, fmt.Errorf("%w: %d results of %d commands", ErrAnswer, len(answer.Results), len(commands))
	}
	results := make([]metadata.Result, len(commands))
	for i, r := range answer.Results {
		if results[i], err = r.Decode(); err != nil {
			return nil, q.again, fmt.Errorf("%w: %w", ErrAnswer, err)
		}
	}
	return results, q.again, nil
}

func (c *Client) Status(ctx context.Context) (protocol.Status, error) {
	var s protocol.Status
	return s, c.call(ctx, &request{method: http.MethodGet, path: "/v1/status", reads: true}, &s)
}

type request struct {
	method, path string
	body         []byte
	reads        bool // changes nothing, so it can be repeated
	known        bool // all changes have identities, so it can be repeated
	again        bool // was sent before
	seen         metadata.Seen
}

func (c *Client) call(ctx context.Context, q *request, into any) error {
	text, status, err := c.exchange(ctx, q)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s: %w: %d %.200q", q.path, ErrAnswer, status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w: %w", q.path, ErrAnswer, err)
	}
	return nil
}

// exchange tries replicas in turn until one answers, or the request may have been executed and must not be repeated.
func (c *Client) exchange(ctx context.Context, q *request) (answer []byte, status int, err error) {
	once := false // was sent to any replica
	replicas := c.currentReplicas()
	for range replicas {
		at := c.at.Load()
		var sent bool
		answer, status, sent, err = c.attempt(ctx, replicas[int(at)%len(replicas)], q)
		if err == nil {
			return answer, status, nil
		}
		inDoubt := sent && !q.reads && !q.known
		once = once || sent
		q.again = q.again || sent
		if ctx.Err() == nil && (!inDoubt || errors.Is(err, ErrHung)) {
			c.at.CompareAndSwap(at, at+1)
		}
		if ctx.Err() != nil || inDoubt {
			break
		}
	}
	if !once {
		err = fmt.Errorf("%s: %w", unchanged, err)
	}
	return nil, 0, advice.With(fmt.Errorf("request to the metadata server: %w", err), "check that the server runs: metad serve --listen ADDR")
}

// attempt sends a request to one replica. sent reports whether an unanswered request may have arrived.
func (c *Client) attempt(ctx context.Context, r *replica, q *request) (answer []byte, status int, sent bool, err error) {
	if r.isSuspect() {
		if err := c.probe(ctx, r, time.Now().Add(-c.pingAfter)); err != nil {
			return nil, 0, false, err
		}
	}
	guarded, connected, release := c.guardRequest(ctx, r)
	defer release()
	asked, err := http.NewRequestWithContext(guarded, q.method, r.base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, 0, false, err
	}
	if c.bearer != "" {
		asked.Header.Set("Authorization", c.bearer)
	}
	if q.known && !q.reads {
		asked.Header.Set(protocol.SeenHeader, q.seen.String())
	}
	if q.again && !q.reads {
		asked.Header.Set(protocol.AgainHeader, "1")
	}
	start := time.Now()
	response, err := c.http.Do(asked)
	if err == nil {
		c.recordSeen(response.Header)
		answer, err = io.ReadAll(response.Body)
		err = errors.Join(err, response.Body.Close())
	}
	if err != nil {
		if cause := context.Cause(guarded); errors.Is(cause, ErrHung) {
			err = cause
		}
		return nil, 0, connected.Load(), err
	}
	r.recordAnswer(time.Since(start), c.pingAfter)
	return answer, response.StatusCode, true, nil
}

const unchanged = "nothing was changed"

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
