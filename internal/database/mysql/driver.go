package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// Dial makes a TCP connection.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Driver opens the clients of a database of the family. What its clients share, clients of
// another one do not. It must not be copied.
type Driver struct {
	// Kind names the database in errors.
	Kind string
	// Discover is set where only one member takes writes.
	Discover Discover
	// Column is the type of the columns of fields; Blob where it is nil. Engine ends the
	// statement that makes a table (" ENGINE=NDB").
	Column Column
	Engine string
	// Dial makes connections; a net.Dialer does where it is nil.
	Dial Dial

	mu      sync.Mutex
	routers map[settings]*shared
}

// shared is a router in use.
type shared struct {
	users int
	ready chan struct{} // closed when router or err is set
	*router
	err error
}

// Open returns a client for one worker. Properties are listed by Properties; others are the
// workload's.
func (d *Driver) Open(ctx context.Context, properties map[string]string) (*Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	sh := d.routers[s]
	first := sh == nil
	if first {
		if d.routers == nil {
			d.routers = make(map[settings]*shared)
		}
		sh = &shared{ready: make(chan struct{})}
		d.routers[s] = sh
	}
	sh.users++
	d.mu.Unlock()
	if first {
		sh.router, sh.err = newRouter(ctx, s, d.Discover, d.Dial)
		close(sh.ready)
	}
	select {
	case <-sh.ready:
	case <-ctx.Done():
		d.release(s, sh, false)
		return nil, fmt.Errorf("opening a client of %s: %w", d.Kind, ctx.Err())
	}
	if sh.err != nil {
		d.release(s, sh, true)
		return nil, fmt.Errorf("opening a client of %s: %w", d.Kind, sh.err)
	}
	c := &Client{router: sh.router, worker: int(sh.workers.Add(1) - 1), maker: &maker{d.Column, d.Engine}, known: make(map[string]*table)}
	if d.Column == nil {
		c.maker.column = Blob
	}
	c.release = func() { d.release(s, sh, false) }
	if err := c.warm(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening a client of %s: %w", d.Kind, err), c.Close())
	}
	return c, nil
}

// OpenMember returns a client that reads one member's own copy, asked from its own host: who audits has no way to a
// lab's addresses. Session is the variables that keep it from waiting for other members.
func (d *Driver) OpenMember(ctx context.Context, of *Server, session string) (load.Client, error) {
	s, err := parseSettings(map[string]string{PropHosts: of.Addr(), PropMember: First, PropSession: session})
	if err != nil {
		return nil, err
	}
	r, err := newRouter(ctx, s, nil, host.Dialer(of.Host, AdminTimeout))
	if err != nil {
		return nil, fmt.Errorf("opening a client of %s on %s: %w", d.Kind, of.Host.Name(), err)
	}
	return &Client{router: r, alone: true, known: make(map[string]*table)}, nil
}

// release gives a router back. One that failed is not given to anybody else.
func (d *Driver) release(s settings, sh *shared, failed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sh.users--
	if (sh.users == 0 || failed) && d.routers[s] == sh {
		delete(d.routers, s)
	}
}

// warm connects, and makes the workload's table, so that the first operation need not.
func (c *Client) warm(ctx context.Context) error {
	l, err := c.begin(ctx, true)
	if err != nil {
		return err
	}
	_, err = c.table(ctx, l, "")
	return c.end(ctx, l, err)
}
