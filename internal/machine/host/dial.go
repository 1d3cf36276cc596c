package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// ErrName is returned by Host.Dial for an address that would have to be looked up: only on
// the asking side could it be, where a node's names mean nothing.
var ErrName = errors.New("the address is a name")

// Dialer is a host's Dial that gives up after so long.
func Dialer(h Host, timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return h.Dial(ctx, network, addr)
	}
}

// Accepts returns nil when something accepts connections from a host, at an IPv4 address and
// port, within a time.
func Accepts(ctx context.Context, h Host, addr string, within time.Duration) error {
	conn, err := Dialer(h, within)(ctx, "tcp4", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Inside is a host whose network is one of this machine: for the machine's own work there,
// with sockets that listen, routes and devices. What only asks servers something has Dial.
type Inside interface {
	Host
	// Netns is the path of its network namespace.
	Netns() string
	// Do calls f with the calling thread inside the node's network namespace.
	// Sockets that f opens stay there; goroutines that f starts do not run there.
	Do(f func() error) error
}

// DialInside is Host.Dial of a host that do brings the calling thread into the network of.
func DialInside(ctx context.Context, do func(f func() error) error, network, addr string) (conn net.Conn, err error) {
	if !strings.HasPrefix(network, "unix") {
		if _, err := netip.ParseAddrPort(addr); err != nil {
			return nil, fmt.Errorf("connect to %s: %w: %w", addr, ErrName, err)
		}
	}
	err = do(func() error {
		// An address without a name is dialled by the goroutine that asks.
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	})
	return conn, err
}
