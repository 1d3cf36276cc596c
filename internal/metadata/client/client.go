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

// Client asks one server, or its replicas: where one takes no connection, the next is
// asked from then on. It may be used by many goroutines.
type Client struct {
	bases []string
	at    atomic.Uint32 // of bases: the one that is asked
	http  *http.Client
	own   string // "/own" to ask for the servers' own tree
}

// New is a client of the server at an address: "127.0.0.1:8080", or a URL; those of several
// replicas have commas between them.
func New(addr string) *Client {
	var bases []string
	for addr := range strings.SplitSeq(addr, ",") {
		bases = append(bases, baseOf(addr))
	}
	return &Client{bases: bases, http: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Minute, DisableCompression: true,
	}}}
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
	if err := c.ask(ctx, http.MethodPost, "/v1"+c.own+"/batch", body, &answer); err != nil {
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
	return s, c.ask(ctx, http.MethodGet, "/v1/status", nil, &s)
}

func (c *Client) ask(ctx context.Context, method, path string, body []byte, into any) error {
	text, status, err := c.exchange(ctx, method, path, body)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s: %w: %d %.200q", path, ErrAnswer, status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w: %w", path, ErrAnswer, err)
	}
	return nil
}

// Text posts a body of the protocol, and returns the answer as it is.
func (c *Client) Text(ctx context.Context, body string) (answer []byte, status int, err error) {
	return c.exchange(ctx, http.MethodPost, "/", []byte(body))
}

func (c *Client) exchange(ctx context.Context, method, path string, body []byte) (answer []byte, status int, err error) {
	var response *http.Response
	for range c.bases {
		at := c.at.Load()
		r, problem := http.NewRequestWithContext(ctx, method, c.bases[int(at)%len(c.bases)]+path, bytes.NewReader(body))
		if problem != nil {
			return nil, 0, problem
		}
		var dial *net.OpError
		response, err = c.http.Do(r)
		if err == nil || !errors.As(err, &dial) || dial.Op != "dial" || ctx.Err() != nil {
			break // what was sent may have been done: it is not sent again
		}
		c.at.CompareAndSwap(at, at+1)
	}
	if err != nil {
		return nil, 0, advice.With(fmt.Errorf("asking the metadata server: %w", err), "is it running? skerry metadata serve --listen ADDR")
	}
	answer, err = io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, 0, fmt.Errorf("reading the metadata server's answer: %w", err)
	}
	return answer, response.StatusCode, nil
}
