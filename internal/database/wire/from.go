package wire

import (
	"context"
	"net"
	"time"

	"skerry/internal/host"
)

// DialFunc connects, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// From connects from inside a node: questions that a cluster's management asks a server
// from the server's own node cross no link of the lab and count in nobody's traffic.
func From(h host.Host, timeout time.Duration) DialFunc {
	return func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		err = h.Do(func() error {
			// An address without a name is dialled by the goroutine that asks.
			conn, err = (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, addr)
			return err
		})
		return conn, err
	}
}
