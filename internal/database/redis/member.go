package redis

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

const (
	// poll is how often a state that becomes true is asked for.
	pollInterval = 20 * time.Millisecond
	// upTimeout bounds how long a server may take to read its data and answer.
	upTimeout = 60 * time.Second
	// stopGrace is what a server gets between SIGTERM and SIGKILL.
	stopGrace = 5 * time.Second
	// adminTimeout bounds one question to one node.
	adminTimeout = 5 * time.Second
)

// member is a server on a node.
type member struct {
	host  host.Host
	addr  string // others reach it by
	local string // it listens at
	dir   string
	// admin talks to the server from its own node, so that questions cross no link
	// of the lab and count in nobody's traffic.
	admin *goredis.Client

	daemon.Seat
}

// Name implements daemon.Member.
func (m *member) Name() string { return m.host.Name() }

func (c *cluster) newMember(h host.Host) *member {
	m := &member{host: h, addr: database.Reach(h, c.options.port), local: database.Local(h, c.options.port), dir: filepath.Join(h.Dir(), c.kind.name)}
	m.admin = goredis.NewClient(m.clientOptions(h, adminTimeout))
	return m
}

func (m *member) clientOptions(from host.Host, timeout time.Duration) *goredis.Options {
	addr := m.addr
	if from == m.host {
		addr = m.local
	}
	o := nodeOptions(addr, settings{timeout: timeout})
	o.Dialer = host.Dialer(from, timeout)
	return o
}

// changer is what connections that change the cluster are called, for fence.
const changer = "skerry-change"

// openChanger changes the cluster, from a node: its requests cross the links between them.
func (m *member) openChanger(from host.Host) *goredis.Client {
	o := m.clientOptions(from, linkTimeout)
	o.ClientName = changer
	return goredis.NewClient(o)
}

// startNew starts a server that knows nobody and waits until it answers. The end of one
// that is joining a cluster is not yet the cluster's failure.
func (c *cluster) startNew(ctx context.Context, h host.Host, joining bool) (*member, error) {
	m := c.newMember(h)
	// A node's identity is in its nodes.conf. Members that were told to forget one
	// shut it out for a minute, so each membership has a new one.
	if err := files.Empty(ctx, h.Files(), m.dir); err != nil {
		return nil, fmt.Errorf("emptying the directory of %s on %s: %w", c.kind.name, h.Name(), err)
	}
	if err := c.launch(ctx, m, joining); err != nil {
		return nil, errors.Join(err, m.admin.Close())
	}
	return m, nil
}

// launch starts a member's server on what its directory holds and waits until it has
// read it.
func (c *cluster) launch(ctx context.Context, m *member, joining bool) error {
	d, err := c.Servers.Start(ctx, m.host, daemon.Spec{
		Command: host.Command{
			Name: c.kind.name, Path: c.Env.Installation.Programs[c.kind.server], Env: c.Env.Installation.Env,
			Args: c.options.arguments(m.host, m.dir), Dir: m.dir, Log: filepath.Join(m.dir, c.kind.name+".log"),
		},
		Ports: []int{c.options.port, c.options.port + busOffset},
		Grace: stopGrace, Joining: joining,
	})
	if err != nil {
		return err
	}
	m.SetServer(d)
	// A server that reads its data answers LOADING.
	if err := d.Await(ctx, upTimeout, func(ctx context.Context) error { return m.admin.Ping(ctx).Err() }); err != nil {
		return errors.Join(err, m.Halt(ctx, database.Abrupt))
	}
	return nil
}

// stop ends the server in its own way.
func (m *member) stop(ctx context.Context) error {
	return errors.Join(m.Server().Stop(ctx), m.admin.Close())
}
