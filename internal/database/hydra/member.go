package hydra

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"skerry/internal/base/unit"
	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/deploy"
	"skerry/systems/hydra/hydraclient"
)

const (
	// adminTimeout bounds one question to one member.
	adminTimeout = daemon.QueryTimeout
	// stopGrace is the time between SIGTERM and SIGKILL, in which a member hands over its leadership.
	stopGrace = 15 * time.Second
)

type member struct {
	host    host.Host
	id      uint64
	addr    string // of its interface
	peer    string
	cloud   string
	witness bool
	// admin talks to it from its own node.
	admin *hydraclient.Client

	daemon.Seat
}

func (m *member) Name() string { return m.host.Name() }

func (c *cluster) newMember(h host.Host) (*member, error) {
	m := &member{
		host: h, witness: h.Name() == c.options.witness, cloud: h.Site(),
		// Identifiers are never used again, and a node may leave and join again.
		id:   rand.Uint64N(1<<53-1) + 1,
		addr: net.JoinHostPort(h.Addr(), strconv.Itoa(c.options.port)),
		peer: net.JoinHostPort(h.Addr(), strconv.Itoa(c.options.peerPort)),
	}
	if c.options.clouds == cloudNode {
		m.cloud = h.Name()
	}
	var err error
	m.admin, err = hydraclient.New(hydraclient.Config{Endpoints: []string{m.addr}, Timeout: adminTimeout, Dial: host.Dialer(h, adminTimeout)})
	return m, err
}

func (m *member) dir() string { return filepath.Join(m.host.Dir(), Name) }
func (m *member) log() string { return filepath.Join(m.host.Dir(), "hydra.log") }

func (c *cluster) startNew(ctx context.Context, m *member, members []*member, join bool) error {
	if err := files.Empty(ctx, m.host.Files(), m.dir()); err != nil {
		return fmt.Errorf("emptying the directory of hydra on %s: %w", m.host.Name(), err)
	}
	o := c.options
	file := deploy.MemberFile{
		Cluster: c.name, ID: m.id, Name: m.host.Name(), Cloud: m.cloud, Listen: m.addr, Peer: m.peer, Data: m.dir(),
		Witness: m.witness, Join: join, Direct: o.direct, Insecure: true, Election: unit.Duration(o.election), PreferCloud: o.preferCloud,
		FollowWrites: o.followWrites, MaxLog: new(unit.Bytes(o.maxLog)), MaxAge: unit.Duration(o.maxAge), Drain: new(unit.Duration(0)),
	}
	if !m.witness {
		var err error
		if file.Database, err = c.ensureDatabase(ctx, m); err != nil {
			return err
		}
	}
	for _, other := range members {
		file.Members = append(file.Members, deploy.MemberEntry{
			ID: other.id, Name: other.host.Name(), Cloud: other.cloud, Peer: other.peer, API: other.addr, Witness: other.witness,
		})
	}
	if err := file.Write(ctx, m.host, m.configPath()); err != nil {
		return fmt.Errorf("configuring hydra: %w", err)
	}
	return c.startProcess(ctx, m, join)
}

func (m *member) configPath() string { return filepath.Join(m.dir(), "node.yaml") }

func (c *cluster) startProcess(ctx context.Context, m *member, joining bool) error {
	d, err := c.Servers.Start(ctx, m.host, daemon.Spec{
		Command: host.Command{
			Name: Name, Path: c.Env.Installation.Programs[program], Env: c.Env.Installation.Env,
			Dir: m.dir(), Log: m.log(), Args: []string{"node", "--config", m.configPath()},
		},
		Ports: []int{c.options.port, c.options.peerPort}, Grace: stopGrace, Joining: joining,
	})
	if err != nil {
		return err
	}
	m.SetServer(d)
	return nil
}

func (m *member) queryStatus(ctx context.Context) (api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	s, err := m.admin.Status(ctx)
	if err != nil {
		return s, fmt.Errorf("querying hydra on %s: %w", m.host.Name(), err)
	}
	return s, nil
}

// checkServing returns nil when a linearizable read succeeds, or a witness knows the leader.
func (m *member) checkServing(ctx context.Context) error {
	s, err := m.queryStatus(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", database.ErrNotReady, err)
	case s.Leader == "":
		return fmt.Errorf("%w: %s knows of no leader", database.ErrNotReady, m.host.Name())
	case s.Problem != "":
		return fmt.Errorf("%w: %s: %s", database.ErrNotReady, m.host.Name(), s.Problem)
	case m.witness:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if _, err := m.admin.Tables(ctx); err != nil {
		return fmt.Errorf("%w: hydra on %s: %w", database.ErrNotReady, m.host.Name(), err)
	}
	return nil
}
