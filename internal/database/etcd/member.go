package etcd

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

const (
	// adminTimeout bounds one question to one member.
	adminTimeout = daemon.QueryTimeout
	// stopGrace is the time between SIGTERM and SIGKILL, in which a member hands over its leadership.
	stopGrace = 10 * time.Second

	// States of a cluster that a member is given when it starts on an empty directory.
	stateNew      = "new"
	stateExisting = "existing"
)

type member struct {
	host host.Host
	addr string // for clients
	// admin talks to it from its own node.
	admin *clientv3.Client
	// patience bounds a linearizable read. A new leader drops those that
	// come before its first entry is agreed on, and its member does not ask again.
	readTimeout time.Duration

	daemon.Seat
	id atomic.Uint64
}

func (m *member) Name() string { return m.host.Name() }

func newMember(h host.Host, o options) (*member, error) {
	addr := net.JoinHostPort(h.Addr(), strconv.Itoa(o.port))
	admin, err := dialMember(addr, host.Dialer(h, adminTimeout), database.Login{})
	if err != nil {
		return nil, err
	}
	return &member{host: h, addr: addr, admin: admin, readTimeout: o.election / 2}, nil
}

func (o options) peerURL(h host.Host) string {
	return "http://" + net.JoinHostPort(h.Addr(), strconv.Itoa(o.peerPort))
}

func (m *member) dir() string { return filepath.Join(m.host.Dir(), Name) }
func (m *member) log() string { return filepath.Join(m.dir(), "etcd.log") }

func (c *cluster) startNew(ctx context.Context, m *member, state, peers string, more ...string) error {
	if err := files.Empty(ctx, m.host.Files(), m.dir()); err != nil {
		return fmt.Errorf("emptying the directory of etcd on %s: %w", m.host.Name(), err)
	}
	return c.startProcess(ctx, m, append(more, "--initial-cluster-state", state, "--initial-cluster", peers, "--initial-cluster-token", "skerry")...)
}

// startProcess starts a member's process. etcd ignores the cluster arguments if the directory holds data.
func (c *cluster) startProcess(ctx context.Context, m *member, args ...string) error {
	o := c.options
	client, peer := "http://"+m.addr, o.peerURL(m.host)
	in := c.Installation(m.Name())
	d, err := c.Servers.Start(ctx, m.host, daemon.Spec{
		Command: host.Command{
			Name: Name, Path: in.Programs[Name], Env: in.Env, Dir: m.dir(), Log: m.log(),
			Args: append(append([]string{
				"--name", m.host.Name(), "--data-dir", filepath.Join(m.dir(), "data"), "--logger", "zap",
				"--listen-client-urls", client, "--advertise-client-urls", client,
				"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			}, o.config...), args...),
		},
		Ports: []int{o.port, o.peerPort}, Grace: stopGrace,
	})
	if err != nil {
		return err
	}
	m.SetServer(d)
	return nil
}

func (m *member) queryStatus(ctx context.Context) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	s, err := m.admin.Status(ctx, m.addr)
	if err != nil {
		return nil, fmt.Errorf("querying etcd on %s: %w", m.host.Name(), err)
	}
	m.id.Store(s.Header.MemberId)
	return s, nil
}

func (m *member) checkServing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.readTimeout)
	defer cancel()
	if _, err := m.admin.Get(ctx, recordKey("", ""), clientv3.WithCountOnly()); err != nil {
		return fmt.Errorf("%w: etcd on %s: %w", database.ErrNotReady, m.host.Name(), err)
	}
	return nil
}
