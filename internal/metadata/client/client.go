// Package client asks a metadata server, over the JSON form of its protocol.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"skerry/internal/advice"
	"skerry/internal/metadata"
	"skerry/internal/metadata/server"
	"skerry/internal/metadata/wire"
)

// idleConnections are kept open: as many goroutines ask at once without dialling anew.
const idleConnections = 64

// ErrAnswer marks an answer that is not a metadata server's.
var ErrAnswer = errors.New("not the answer of a metadata server")

// Client asks one server, or its replicas: where one takes no connection, or hangs, the
// next is asked from then on. A read that a replica did not answer is asked of the next; a
// change that may have reached one is not. It may be used by many goroutines.
type Client struct {
	replicas []*replica
	at       atomic.Uint32 // of replicas: the one that is asked
	http     *http.Client
	own      string // "/own" to ask for the servers' own tree

	quiet, floor time.Duration
}

// New is a client of the server at an address: "127.0.0.1:8080", or a URL; those of several
// replicas have commas between them.
func New(addr string) *Client {
	c := &Client{quiet: quiet, floor: floor, http: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Minute, DisableCompression: true,
	}}}
	for addr := range strings.SplitSeq(addr, ",") {
		c.replicas = append(c.replicas, newReplica(baseOf(addr)))
	}
	return c
}

// NewOwn is a client of a server's own tree, where several share one.
func NewOwn(addr string) *Client {
	c := New(addr)
	c.own = "/own"
	return c
}

// Through has the client connect by dial, before its first request.
func (c *Client) Through(dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	c.http.Transport.(*http.Transport).DialContext = dial
}

// Close closes connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do has commands run one after the other. Where the server cannot be asked, every result
// has that error, an ErrUnavailable.
func (c *Client) Do(ctx context.Context, commands []metadata.Command) []metadata.Result {
	results, err := c.do(ctx, commands)
	if err != nil {
		err = fmt.Errorf("%w: %w", metadata.ErrUnavailable, err)
		results = make([]metadata.Result, len(commands))
		for i := range results {
			results[i].Err = err
		}
	}
	return results
}

// One has one command run.
func (c *Client) One(ctx context.Context, command metadata.Command) metadata.Result {
	return c.Do(ctx, []metadata.Command{command})[0]
}

func (c *Client) do(ctx context.Context, commands []metadata.Command) ([]metadata.Result, error) {
	batch := wire.Batch{Commands: make([]wire.Command, len(commands))}
	for i, command := range commands {
		batch.Commands[i] = wire.Of(command)
	}
	body, err := json.Marshal(batch)
	if err != nil {
		return nil, err
	}
	var answer wire.Results
	reads := !slices.ContainsFunc(commands, func(c metadata.Command) bool { return c.Op.Changes() })
	if err := c.ask(ctx, request{http.MethodPost, "/v1" + c.own + "/batch", body, reads}, &answer); err != nil {
		return nil, err
	}
	if len(answer.Results) != len(commands) {
		return nil, fmt.Errorf("%w: %d results of %d commands", ErrAnswer, len(answer.Results), len(commands))
	}
	results := make([]metadata.Result, len(commands))
	for i, r := range answer.Results {
		if results[i], err = r.Result(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
		}
	}
	return results, nil
}

// Status is how the server stands.
func (c *Client) Status(ctx context.Context) (server.Status, error) {
	var s server.Status
	return s, c.ask(ctx, request{http.MethodGet, "/v1/status", nil, true}, &s)
}

// request is what is asked of any replica.
type request struct {
	method, path string
	body         []byte
	reads        bool // it changes nothing, and may be asked twice
}

func (c *Client) ask(ctx context.Context, q request, into any) error {
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

// Text posts a body of the protocol, and returns the answer as it is.
func (c *Client) Text(ctx context.Context, body string) (answer []byte, status int, err error) {
	return c.exchange(ctx, request{http.MethodPost, "/", []byte(body), false})
}

// exchange asks one replica after the other, until one answers or what it was asked may
// have been done.
func (c *Client) exchange(ctx context.Context, q request) (answer []byte, status int, err error) {
	for range c.replicas {
		at := c.at.Load()
		var sent bool
		answer, status, sent, err = c.attempt(ctx, c.replicas[int(at)%len(c.replicas)], q)
		if err == nil {
			return answer, status, nil
		}
		inDoubt := sent && !q.reads
		if ctx.Err() == nil && (!inDoubt || errors.Is(err, ErrHung)) {
			c.at.CompareAndSwap(at, at+1)
		}
		if ctx.Err() != nil || inDoubt {
			break
		}
	}
	return nil, 0, advice.With(fmt.Errorf("asking the metadata server: %w", err), "is it running? skerry metadata serve --listen ADDR")
}

// attempt asks one replica. sent tells, where there is no answer, whether the request may
// have reached it.
func (c *Client) attempt(ctx context.Context, r *replica, q request) (answer []byte, status int, sent bool, err error) {
	if r.suspect() {
		if err := c.there(ctx, r, time.Now().Add(-c.quiet)); err != nil {
			return nil, 0, false, fmt.Errorf("%s: %w", unchanged, err)
		}
	}
	guarded, connected, release := c.guarded(ctx, r)
	defer release()
	asked, err := http.NewRequestWithContext(guarded, q.method, r.base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, 0, false, err
	}
	start := time.Now()
	response, err := c.http.Do(asked)
	if err == nil {
		answer, err = io.ReadAll(response.Body)
		err = errors.Join(err, response.Body.Close())
	}
	if err != nil {
		if cause := context.Cause(guarded); errors.Is(cause, ErrHung) {
			err = cause
		}
		if sent = connected.Load(); !sent {
			err = fmt.Errorf("%s: %w", unchanged, err)
		}
		return nil, 0, sent, err
	}
	r.answered(time.Since(start), c.quiet)
	return answer, response.StatusCode, true, nil
}

// unchanged is what an error begins with that is known to have changed nothing.
const unchanged = "nothing was changed"
