package mysql

import (
	"context"
	"errors"
	"fmt"
	"net"

	"skerry/internal/database"
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

	routers database.ClientPool[settings, *router]
}

// Open returns a client for one worker. Properties are listed by Properties; others are the
// workload's.
func (d *Driver) Open(ctx context.Context, properties map[string]string) (*Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	router, release, err := d.routers.Acquire(ctx, s, database.ClientSource[*router]{
		Open: func(ctx context.Context) (*router, error) { return newRouter(ctx, s, d.Discover, d.Dial) },
	})
	if err != nil {
		return nil, fmt.Errorf("opening a client of %s: %w", d.Kind, err)
	}
	c := &Client{
		router: router, release: release, worker: int(router.workers.Add(1) - 1),
		maker: &maker{d.Column, d.Engine}, known: make(map[string]*table),
	}
	if d.Column == nil {
		c.maker.column = Blob
	}
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

// warm connects, and makes the workload's table, so that the first operation need not.
func (c *Client) warm(ctx context.Context) error {
	l, err := c.beginOperation(ctx, true)
	if err != nil {
		return err
	}
	_, err = c.table(ctx, l, "")
	return c.endOperation(ctx, l, err)
}
