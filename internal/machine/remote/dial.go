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
)

// Dial implements host.Host. It returns one end of a socket pair, so that the kernel implements deadlines and half-closing:
//
//	caller ── near, far ── stream of the call ── agent ── connection
//
// The last bytes from a server must not be lost. They would be if the call closed far:
//
//  1. The server sends its last bytes and closes the connection. The response ends with these bytes.
//  2. HTTP closes the request's body, far, because it has no reader any more.
//  3. The last bytes cannot be copied to far, which is closed.
//
// So the call only stops reading far. As with TCP, a client that writes to a closed server gets no immediate error: its
// bytes are discarded until it closes its end.
func (n *node) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	near, far, err := pair()
	if err != nil {
		return nil, fmt.Errorf("%s: connecting to %s: %w", n.m.name, addr, err)
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	connecting := context.AfterFunc(ctx, end)
	a, err := n.m.beginCall(life, "/host/Dial", n.of, unread{far}, network, addr)
	if err == nil {
		err = a.skipNewline()
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
		a.Close()
		n.m.outlive(far)
		end()
	})
	return &conn{UnixConn: near, from: address(network, n.is.Addr+":0"), to: address(network, addr), end: end}, nil
}

// outlive keeps far open until the client has closed its end or the agent has ended.
func (m *Machine) outlive(far *net.UnixConn) {
	_ = far.CloseWrite()                 // the caller may have closed its end
	_ = far.SetReadDeadline(time.Time{}) // that of unread
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.Copy(io.Discard, far)
	}()
	select {
	case <-left:
	case <-m.Closed():
	}
	far.Close()
	<-left
}

// unread is a socket that the call reads but does not close.
type unread struct{ *net.UnixConn }

// Close interrupts a pending Read.
func (u unread) Close() error { return u.SetReadDeadline(time.Now()) }

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

type conn struct {
	*net.UnixConn
	from, to net.Addr
	end      context.CancelFunc
}

func (c *conn) LocalAddr() net.Addr  { return c.from }
func (c *conn) RemoteAddr() net.Addr { return c.to }

// parting is the time for bytes written before Close to be sent.
const parting = 5 * time.Second

// Close sends what was written and closes the connection.
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
