package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"

	"skerry/internal/database"
	"skerry/internal/load"
)

const (
	// retryPreferred is the time until a worker retries its preferred member. It doubles up to maxRetryPreferred.
	retryPreferred    = 2 * time.Second
	maxRetryPreferred = 32 * time.Second
	// learnEvery is the interval between refreshes of the member list, which a member answers without Raft.
	learnEvery = 5 * time.Second
)

// client belongs to one worker. It moves to the next member after a failure and resends only unsent operations.
type client struct {
	settings
	login        database.Login
	dial         database.DialFunc // nil: the system's
	singleMember bool              // one member's own copy is read
	decode       decoder
	buffer       []byte       // of a record to be written
	fields       []load.Field // of a record to be merged
	retries      atomic.Int64

	current        int // the endpoint in use
	preferredAfter time.Time
	preferredWait  time.Duration
	lastLearned    time.Time // time of the last request for the members

	mu    sync.Mutex
	addrs []string // preferred first; more are learnt
	conns []*clientv3.Client

	learning   sync.WaitGroup
	isLearning atomic.Bool // learning
	ctx        context.Context
	cancel     context.CancelFunc
}

var (
	_ load.Client     = (*client)(nil)
	_ load.Retrier    = (*client)(nil)
	_ load.Counter    = (*client)(nil)
	_ load.BulkClient = (*client)(nil)
)

func openClient(ctx context.Context, s settings, spread *spreader) (*client, error) {
	login, err := database.ReadLogin(s.access, "", "")
	if err != nil {
		return nil, fmt.Errorf("opening a client of etcd: %w", err)
	}
	c := newClient(ctx, s, nil)
	c.login = login
	c.addrs = spread.orderEndpoints(ctx, s.endpoints, s.route)
	c.conns = make([]*clientv3.Client, len(c.addrs))
	// Connecting now reports a wrong address at once and keeps it out of the first operation.
	if _, err := c.get(ctx, defaultTable, clientv3.WithSerializable(), clientv3.WithCountOnly()); err != nil {
		return nil, errors.Join(fmt.Errorf("opening a client of etcd: %w", err), c.Close())
	}
	return c, nil
}

func newClient(ctx context.Context, s settings, dial database.DialFunc) *client {
	c := &client{settings: s, dial: dial, preferredWait: retryPreferred}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return c
}

func (c *client) Retries() int64 { return c.retries.Load() }

// do has a member do something. The tries are one for each member while nothing is sent.
func (c *client) do(ctx context.Context, ask func(context.Context, *clientv3.Client) error) error {
	if err := ctx.Err(); err != nil {
		return load.Failed(database.ErrorClass(err), "", err)
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	if c.requireLeader {
		ctx = clientv3.WithRequireLeader(ctx)
	}
	if c.current != 0 && time.Now().After(c.preferredAfter) {
		c.current = 0
	}
	for try := 1; ; try++ {
		conn, addr, count, err := c.conn(c.current)
		opened := err == nil
		if opened {
			err = ask(ctx, conn)
		}
		if err == nil {
			c.noteServed()
			return nil
		}
		sent := opened && !isUnsent(err)
		err = classifyError(addr, err)
		if e := (*load.OpError)(nil); !opened && errors.As(err, &e) {
			e.Outcome = load.NotDone
		}
		if c.singleMember || !canRetryElsewhere(err) {
			return err
		}
		c.nextEndpoint(count)
		if sent || try >= count || ctx.Err() != nil {
			return err
		}
		c.retries.Add(1)
	}
}

func (c *client) noteServed() {
	if c.current == 0 {
		c.preferredWait = retryPreferred
	}
	if now := time.Now(); !c.singleMember && now.Sub(c.lastLearned) > learnEvery {
		c.lastLearned = now
		c.learnMembers(c.current)
	}
}

func (c *client) nextEndpoint(count int) {
	if c.current == 0 {
		c.preferredAfter = time.Now().Add(c.preferredWait)
		c.preferredWait = min(2*c.preferredWait, maxRetryPreferred)
	}
	c.current = (c.current + 1) % count
	c.learnMembers(c.current)
}

func (c *client) conn(i int) (conn *clientv3.Client, addr string, count int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns[i] == nil {
		c.conns[i], err = dialMember(c.addrs[i], c.dial, c.login)
	}
	return c.conns[i], c.addrs[i], len(c.addrs), err
}

// learnMembers fetches the member list in the background, one request at a time.
func (c *client) learnMembers(i int) {
	if !c.isLearning.CompareAndSwap(false, true) {
		return
	}
	conn, _, _, err := c.conn(i)
	if err != nil {
		c.isLearning.Store(false)
		return // the operation that needs the connection reports the error
	}
	c.learning.Go(func() {
		defer c.isLearning.Store(false)
		ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
		defer cancel()
		list, err := conn.MemberList(ctx, clientv3.WithSerializable())
		if err != nil {
			return // retried after the next failure
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, m := range list.Members {
			for _, u := range m.ClientURLs {
				parsed, err := url.Parse(u)
				if err == nil && !m.IsLearner && !slices.Contains(c.addrs, parsed.Host) {
					c.addrs = append(c.addrs, parsed.Host)
					c.conns = append(c.conns, nil)
				}
			}
		}
	})
}

func (c *client) Close() error {
	c.cancel()
	c.learning.Wait()
	var errs []error
	for _, conn := range c.conns {
		if conn != nil {
			errs = append(errs, closeClient(conn))
		}
	}
	c.conns = nil
	return errors.Join(errs...)
}

const (
	// loginTimeout bounds a login with a password.
	loginTimeout = 5 * time.Second
	// keepAlive is the idle time before a ping, and for its answer. etcd refuses pings more often than every 5 s.
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
)

// reconnect retries faster than gRPC's default of up to two minutes.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 3 * time.Second,
}

type spreader struct{ next atomic.Uint32 }

func (s *spreader) orderEndpoints(ctx context.Context, endpoints []string, route string) []string {
	switch route {
	case routeNearest:
		return database.SortByDistance(ctx, nil, endpoints)
	case routeSpread:
		i := int(s.next.Add(1)-1) % len(endpoints)
		return slices.Concat(endpoints[i:], endpoints[:i])
	}
	return endpoints
}

// dialMember returns a client of one member, without retries. It connects later, or now to log in with a password. A nil
// dial is the system's.
func dialMember(addr string, dial database.DialFunc, login database.Login) (*clientv3.Client, error) {
	options := []grpc.DialOption{grpc.WithConnectParams(reconnect), grpc.WithChainUnaryInterceptor(failFast)}
	if dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dial(ctx, "tcp4", addr)
		}))
	}
	scheme := "http://"
	if config := login.TLSTo(addr); config != nil {
		scheme = "https://"
		options = append(options, grpc.WithTransportCredentials(namedServer{credentials.NewTLS(config), config.ServerName}))
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{scheme + addr}, Username: login.User, Password: login.Password.Reveal(),
		DialTimeout: loginTimeout, DialOptions: options, MaxUnaryRetries: 1,
		DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAliveTimeout,
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("creating a client of etcd at %s: %w", addr, err)
	}
	return c, nil
}

// namedServer verifies the name of a server that its configuration gives. Package credentials verifies the host of the address.
type namedServer struct {
	credentials.TransportCredentials
	name string
}

func (s namedServer) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return s.TransportCredentials.ClientHandshake(ctx, s.name, conn)
}

func (s namedServer) Clone() credentials.TransportCredentials {
	return namedServer{s.TransportCredentials.Clone(), s.name}
}

// failFast fails a request without a connection at once, so that the caller can try another member.
func failFast(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, cc, append(options, grpc.WaitForReady(false))...)
}

func closeClient(c *clientv3.Client) error {
	if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("closing a client of etcd: %w", err)
	}
	return nil
}
