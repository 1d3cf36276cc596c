// Package hydraclient is Hydra's Go client: rows, scans and transactions over HTTP, with
// endpoints that are tried in turn. What certainly was not done is tried at the next
// endpoint; a write that may have been done is repeated only when it carries a request
// ID, which makes that harmless.
//
//	c, err := client.New(client.Config{Endpoints: []string{"127.0.0.1:7070"}})
//	row, err := c.Get(ctx, "accounts", "ada")
//	_, err = c.Transact(ctx, api.Transaction{
//		Checks: []api.Check{{Table: "accounts", Key: "ada", Is: command.GreaterOrEqual, Field: "balance", Value: json.RawMessage("5")}},
//		Writes: []api.Write{
//			{Do: command.Add, Table: "accounts", Key: "ada", Value: json.RawMessage(`{"balance":-5}`)},
//			{Do: command.Add, Table: "accounts", Key: "bob", Value: json.RawMessage(`{"balance":5}`)},
//		},
//	}, client.RequestID(client.NewRequestID()))
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

// Sentinel errors. What is none of them but ErrInDoubt certainly did not happen.
var (
	ErrNotFound     = errors.New("no such row")
	ErrUnknownTable = errors.New("no such table")
	ErrCheckFailed  = errors.New("a check of the transaction failed")
	ErrBadRequest   = errors.New("bad request")
	ErrTooLarge     = errors.New("too large")
	ErrUnauthorized = errors.New("no right to do this")
	ErrUnavailable  = errors.New("unavailable")
	ErrOverloaded   = errors.New("overloaded")
	// ErrInDoubt says that a write may have been done.
	ErrInDoubt = errors.New("nobody can say whether it was done")
	// ErrNotReached says that a write was committed, but that the acknowledgement it asked
	// for was not reached in time: it will be.
	ErrNotReached = errors.New("committed, but not acknowledged as asked")
)

// Config is how a cluster is reached.
type Config struct {
	// Endpoints are host:port of members or load balancers, the preferred one first.
	Endpoints []string
	// TLS, when set, makes the connections https: it is asked for each one's configuration.
	TLS func() *tls.Config
	// Token is the bearer token, "" for none.
	Token string
	// Timeout bounds an operation whose context has no deadline; 10 s when 0.
	Timeout time.Duration
	// Read and Ack are what operations ask for that do not say themselves; "" leaves it to
	// the member's defaults: linearizable and committed.
	Read api.Read
	Ack  api.Ack
	// Staleness goes with bounded reads.
	Staleness time.Duration
	// Dial, when set, makes the connections.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Streams is how many connections to an endpoint rows and transactions share, any number
	// of them under way on each (package wire): less work for both sides where many
	// goroutines use the client. 0, and endpoints that are load balancers: each has a
	// connection to itself, with HTTP.
	Streams int
	// HTTP, when set, is used in place of a transport of the client's own, which Close ends.
	HTTP http.RoundTripper
}

const (
	defaultTimeout = 10 * time.Second
	// away is how long a client stays with another endpoint before it tries the preferred
	// one again.
	failbackAfter = 2 * time.Second
	// maxIdle is how many idle connections to one endpoint are kept.
	maxIdle = 1024
	// dialTimeout bounds a connection's making.
	dialTimeout = 3 * time.Second
)

// Client is a client of one cluster, for any number of goroutines.
type Client struct {
	config     Config
	scheme     string
	http       http.RoundTripper
	own        *http.Transport
	bearer     string
	current    atomic.Int32 // endpoint in use
	failbackAt atomic.Int64 // when the preferred one is tried again, as Client.now
	started    time.Time
	retries    atomic.Int64

	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	endpoints []*endpoint // with Streams
	streams   sync.WaitGroup
	ctx       context.Context // of connections that are being made
	cancel    context.CancelFunc
}

// New returns a client. It connects with the first operation.
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
	client := &Client{config: c, scheme: "http", http: c.HTTP, started: time.Now()}
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
	if client.http == nil {
		client.own = &http.Transport{
			DialContext: client.dial, DialTLSContext: dialtls.Context(client.dial, c.TLS), MaxIdleConnsPerHost: maxIdle,
			IdleConnTimeout: time.Minute, DisableCompression: true,
		}
		client.http = client.own
	}
	return client, nil
}

// Close ends idle connections, and streams.
func (c *Client) Close() error {
	c.cancel()
	for _, e := range c.endpoints {
		e.close()
	}
	c.streams.Wait()
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// now is a time that only goes forward, whatever becomes of the wall clock.
func (c *Client) now() time.Duration { return time.Since(c.started) }

// Retries is how often operations were tried again at another endpoint.
func (c *Client) Retries() int64 { return c.retries.Load() }

// NewRequestID makes an idempotency key that nobody else has.
func NewRequestID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// request is one operation's parameters.
type request struct {
	method, path string
	query        []string
	requestID    string
	value        any              // of the body, as object takes it; nil for none
	frame        *framing.Request // that is the same on a stream; nil: there is none
	existing     bool             // the frame's first check is that there is the row
	write        bool
	read         api.Read
	ack          api.Ack
	staleness    time.Duration
	meta         *Meta
	retries      *atomic.Int64
}

// Meta is what an answer's headers say.
type Meta struct {
	Member, Cloud string
	Forwarded     string // the member that passed the read on, "" where none did
	Version       uint64
	Applied, Lag  uint64
	Staleness     time.Duration // negative where it is not known
}

// Option changes one operation.
type Option func(*request)

// Read asks for a read's freshness.
func Read(r api.Read) Option { return func(q *request) { q.read = r } }

// Staleness asks for a bounded read.
func Staleness(d time.Duration) Option {
	return func(q *request) { q.read, q.staleness = api.Bounded, d }
}

// Ack asks for a write's acknowledgement.
func Ack(a api.Ack) Option { return func(q *request) { q.ack = a } }

// RequestID makes a write idempotent.
func RequestID(id string) Option { return func(q *request) { q.requestID = id } }

// IfVersion makes a put or delete happen only to the row of that version.
func IfVersion(v uint64) Option {
	return func(q *request) { q.query = append(q.query, fmt.Sprintf("if_version=%d", v)) }
}

// IfAbsent makes a put happen only where there is no row.
func IfAbsent() Option { return func(q *request) { q.query = append(q.query, "if_absent=true") } }

// Retries counts in n, beside the client's own count, how often the operation was tried again.
func Retries(n *atomic.Int64) Option { return func(q *request) { q.retries = n } }

// WithMeta stores what the answer's headers say.
func WithMeta(m *Meta) Option { return func(q *request) { q.meta = m } }

// url is the request's address at an endpoint.
func (c *Client) url(endpoint string, q *request) string {
	var b strings.Builder
	b.WriteString(c.scheme)
	b.WriteString("://")
	b.WriteString(endpoint)
	b.WriteString(q.path)
	for i, p := range q.query {
		if i == 0 {
			b.WriteByte('?')
		} else {
			b.WriteByte('&')
		}
		b.WriteString(p)
	}
	return b.String()
}
