package remote

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/machine/wire"
)

// Dial implements host.Host. What is returned is one end of a pair of sockets, so that deadlines
// and half-closing are the kernel's:
//
//	caller ── pair ── stream of the call ── agent ── connection
func (n *node) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	near, far, err := pair()
	if err != nil {
		return nil, fmt.Errorf("%s: connecting to %s: %w", n.m.name, addr, err)
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	connecting := context.AfterFunc(ctx, end)
	a, err := n.m.begin(life, "/host/dial", n.of, wire.Address{Network: network, Addr: addr}, far)
	if err == nil {
		err = a.streamed()
	}
	if err == nil && !connecting() {
		a.Close()
		err = ctx.Err()
	}
	if err != nil {
		end()
		near.Close()
		far.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("%s: connecting to %s: %w", n.m.name, addr, ctx.Err())
		}
		return nil, err
	}
	n.m.streams.Go(func() {
		_, _ = io.Copy(far, a.rest) // its end is what the caller sees
		far.Close()
		a.Close()
		end()
	})
	return &conn{UnixConn: near, from: address(network, n.is.Addr+":0"), to: address(network, addr), end: end}, nil
}

// pair are two connected sockets.
func pair() (near, far *net.UnixConn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(f)
		f.Close() // FileConn has one of its own
		if err != nil {
			return nil, nil, err
		}
		ends[i] = c.(*net.UnixConn)
	}
	return ends[0], ends[1], nil
}

// conn is a connection from a node.
type conn struct {
	*net.UnixConn
	from, to net.Addr
	end      context.CancelFunc
}

func (c *conn) LocalAddr() net.Addr  { return c.from }
func (c *conn) RemoteAddr() net.Addr { return c.to }

// parting is how long what was written before Close may take to leave.
const parting = 5 * time.Second

// Close has what was written leave, and then ends the connection.
func (c *conn) Close() error {
	time.AfterFunc(parting, c.end)
	return c.UnixConn.Close()
}

func address(network, addr string) net.Addr {
	if at, err := netip.ParseAddrPort(addr); err == nil {
		return net.TCPAddrFromAddrPort(at)
	}
	return &net.UnixAddr{Name: addr, Net: network}
}
