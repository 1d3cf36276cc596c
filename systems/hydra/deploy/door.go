package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"skerry/internal/machine/host"
)

// Door lets a browser on this machine into a lab. It accepts connections here and opens them from one of the lab's
// nodes, like a client there: it resolves the wallet's name by the DNS server and tries the addresses in order.
type Door struct {
	listener net.Listener
	from     host.Host
	server   string // DNS server, HOST:PORT
	name     string
	port     int
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

const (
	// lookupTimeout bounds the DNS query, doorTimeout a connection to one address.
	lookupTimeout = 2 * time.Second
	doorTimeout   = time.Second
)

// OpenDoor listens at addr and forwards connections to a port of name, as resolved by the DNS server.
func OpenDoor(ctx context.Context, addr string, from host.Host, server, name string, port int) (*Door, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening for browsers: %w", err)
	}
	d := &Door{listener: l, from: from, server: server, name: name, port: port}
	ctx, d.cancel = context.WithCancel(ctx)
	d.running.Add(1)
	go func() {
		defer d.running.Done()
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			d.running.Add(1)
			go func() {
				defer d.running.Done()
				d.serve(ctx, conn)
			}()
		}
	}()
	return d, nil
}

// URL returns the wallet's address for a browser.
func (d *Door) URL() string { return "http://" + d.listener.Addr().String() }

func (d *Door) Close() error {
	d.cancel()
	err := d.listener.Close()
	d.running.Wait()
	return err
}

func (d *Door) serve(ctx context.Context, in net.Conn) {
	defer in.Close()
	out, err := d.dialWallet(ctx)
	if err != nil {
		return
	}
	defer out.Close()
	stop := context.AfterFunc(ctx, func() { in.Close(); out.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { splice(out, in) })
	both.Go(func() { splice(in, out) })
	both.Wait()
}

func splice(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		to.Close()
		from.Close()
	}
}

func (d *Door) dialWallet(ctx context.Context) (net.Conn, error) {
	asking, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	all, err := Lookup(asking, d.from.Dial, d.server, d.name)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, addr := range all {
		conn, err := d.dial(ctx, addr)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (d *Door) dial(ctx context.Context, addr netip.Addr) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, doorTimeout)
	defer cancel()
	return d.from.Dial(ctx, "tcp", net.JoinHostPort(addr.String(), strconv.Itoa(d.port)))
}
