// Package hydraclient is Hydra's Go client: rows, scans and transactions, with failover between
// endpoints. An operation that was not executed is repeated at the next endpoint. A write that
// may have been executed is repeated only with a request ID, which makes it idempotent.
//
//	c, err := hydraclient.New(hydraclient.Config{Endpoints: []string{"127.0.0.1:7070"}})
//	row, err := c.Get(ctx, "accounts", "ada")
//	_, err = c.Transact(ctx, api.Transaction{
//		Checks: []api.Check{{Table: "accounts", Key: "ada", Is: command.GreaterOrEqual, Field: "balance", Value: json.RawMessage("5")}},
//		Writes: []api.Write{
//			{Do: command.Add, Table: "accounts", Key: "ada", Value: json.RawMessage(`{"balance":-5}`)},
//			{Do: command.Add, Table: "accounts", Key: "bob", Value: json.RawMessage(`{"balance":5}`)},
//		},
//	}, hydraclient.RequestID(hydraclient.NewRequestID()))
package hydraclient

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skerry/internal/base/dialtls"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/framing"
)

// Sentinel errors. Except for ErrInDoubt and ErrNotReached, the operation was not executed.
var (
	ErrNotFound     = errors.New("no such row")
	ErrUnknownTable = errors.New("no such table")
	ErrCheckFailed  = errors.New("a check of the transaction failed")
	ErrBadRequest   = errors.New("bad request")
	ErrTooLarge     = errors.New("too large")
	ErrUnauthorized = errors.New("unauthorized")
	ErrUnavailable  = errors.New("unavailable")
	ErrOverloaded   = errors.New("overloaded")
	// ErrInDoubt means that a write may have been executed.
	ErrInDoubt = errors.New("outcome unknown")
	// ErrNotReached means that a write was committed without reaching the requested acknowledgement in time.
	ErrNotReached = errors.New("committed, but the requested acknowledgement was not reached")
)

// Config configures a Client.
type Config struct {
	// Endpoints are host:port of members or load balancers, preferred first.
	Endpoints []string
	TLS       func() *tls.Config
	Token     string
	// Timeout bounds operations without a deadline; 10 s if 0.
	Timeout time.Duration
	// Read and Ack are the defaults of operations; "" means the member's: linearizable and committed.
	Read api.Read
	Ack  api.Ack
	// Staleness is for bounded reads.
	Staleness time.Duration
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	// Streams is the number of connections per endpoint that rows and transactions share (package framing), which is less
	// work with many goroutines. With 0, and at load balancers, each operation uses an HTTP connection of its own.
	Streams int
}

const (
	defaultTimeout = 10 * time.Second
	// failbackAfter is the time at another endpoint before the preferred one is tried again.
	failbackAfter = 2 * time.Second
	maxIdle       = 1024
	dialTimeout   = 3 * time.Second
)

// Client accesses one cluster. It is safe for concurrent use.
type Client struct {
	config     Config
	scheme     string
	http       *http.Transport
	bearer     string
	current    atomic.Int32 // endpoint in use
	failbackAt atomic.Int64 // in terms of now
	started    time.Time
	retries    atomic.Int64

	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	endpoints []*endpoint // with Streams
	streams   sync.WaitGroup
	ctx       context.Context // bounds opening connections
	cancel    context.CancelFunc
}

// New returns a client, which connects at the first operation.
func New(c Config) (*Client, error) {
	if len(c.Endpoints) == 0 {
		return nil, fmt.Errorf("%w: no endpoints", ErrBadRequest)
	}
	for _, e := range c.Endpoints {
		if _, _, err := net.SplitHostPort(e); err != nil {
			return nil, fmt.Errorf("%w: endpoint %q is not host:port: %w", ErrBadRequest, e, err)
		}
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	client := &Client{config: c, scheme: "http", started: time.Now()}
	client.ctx, client.cancel = context.WithCancel(context.Background())
	if c.TLS != nil {
		client.scheme = "https"
	}
	if c.Token != "" {
		client.bearer = "Bearer " + c.Token
	}
	if client.dial = c.Dial; client.dial == nil {
		client.dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	for _, addr := range c.Endpoints {
		if c.Streams > 0 {
			client.endpoints = append(client.endpoints, &endpoint{client: client, addr: addr, lanes: make([]lane, c.Streams)})
		}
	}
	client.http = &http.Transport{
		DialContext: client.dial, DialTLSContext: dialtls.DialContext(client.dial, c.TLS), MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout: time.Minute, DisableCompression: true,
	}
	return client, nil
}

func (c *Client) Close() error {
	c.cancel()
	for _, e := range c.endpoints {
		e.close()
	}
	c.streams.Wait()
	c.http.CloseIdleConnections()
	return nil
}

func (c *Client) now() time.Duration { return time.Since(c.started) }

// Retries counts operations repeated at another endpoint.
func (c *Client) Retries() int64 { return c.retries.Load() }

// NewRequestID returns a unique idempotency key.
func NewRequestID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

type request struct {
	method, path string
	query        []string
	requestID    string
	value        any              // body, see encodeValue; nil for none
	frame        *framing.Request // equivalent on a stream, or nil
	existing     bool             // the frame's first check is that the row exists
	write        bool
	read         api.Read
	ack          api.Ack
	staleness    time.Duration
	meta         *Meta
	retries      *atomic.Int64
}

// Meta holds the headers of an answer.
type Meta struct {
	Member, Cloud string
	Forwarded     string // member that forwarded the request, if any
	Version       uint64
	Applied, Lag  uint64
	Staleness     time.Duration // negative if unknown
}

type Option func(*request)

// Read sets a read's consistency level.
func Read(r api.Read) Option { return func(q *request) { q.read = r } }

// Staleness makes a read bounded.
func Staleness(d time.Duration) Option {
	return func(q *request) { q.read, q.staleness = api.Bounded, d }
}

// Ack sets a write's acknowledgement.
func Ack(a api.Ack) Option { return func(q *request) { q.ack = a } }

// RequestID makes a write idempotent.
func RequestID(id string) Option { return func(q *request) { q.requestID = id } }

// Retries also counts the operation's retries in n.
func Retries(n *atomic.Int64) Option { return func(q *request) { q.retries = n } }

// WithMeta stores the answer's headers in m.
func WithMeta(m *Meta) Option { return func(q *request) { q.meta = m } }

func (c *Client) url(endpoint string, q *request) string {
	if len(q.query) == 0 {
		return c.scheme + "://" + endpoint + q.path
	}
	return c.scheme + "://" + endpoint + q.path + "?" + strings.Join(q.query, "&")
}
