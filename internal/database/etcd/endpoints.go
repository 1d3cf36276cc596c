package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"skerry/internal/database"
)

const (
	// keepAlive finds connections whose other end is gone: after so long without an
	// answer a ping is sent, which must be answered within so long. etcd refuses pings
	// more often than every 5 s.
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
)

// reconnect is how gRPC tries again to connect: links of a lab come back within seconds,
// where gRPC's own default waits for up to two minutes.
var reconnect = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 3 * time.Second,
}

// spreader gives workers different members to begin with.
type spreader struct{ next atomic.Uint32 }

// orderEndpoints puts endpoints into the order in which a worker uses them.
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

// dialMember makes a client of one member. It does not connect yet. Its own retries are
// off: a caller that wants to try again says so. A nil dial is the system's.
func dialMember(addr string, dial database.DialFunc) (*clientv3.Client, error) {
	options := []grpc.DialOption{grpc.WithConnectParams(reconnect), grpc.WithChainUnaryInterceptor(failFast)}
	if dial != nil {
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dial(ctx, "tcp4", addr)
		}))
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + addr}, DialOptions: options, MaxUnaryRetries: 1,
		DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAliveTimeout,
		Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of etcd at %s: %w", addr, err)
	}
	return c, nil
}

// failFast has a request fail while there is no connection, where etcd's client would have
// it wait for one until its time is over: another member can be asked meanwhile.
func failFast(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, cc, append(options, grpc.WaitForReady(false))...)
}

// closeClient closes a client. That its context ended with it is no error.
func closeClient(c *clientv3.Client) error {
	if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("closing a client of etcd: %w", err)
	}
	return nil
}
