package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/advice"
	"skerry/internal/database"
	"skerry/internal/host"
)

const (
	// poll is how often a state that becomes true is asked for.
	poll = 20 * time.Millisecond
	// upTimeout bounds how long a server may take to answer its first PING.
	upTimeout = 20 * time.Second
	// stopGrace is what a server gets between SIGTERM and SIGKILL.
	stopGrace = 5 * time.Second
	// adminTimeout bounds one question to one node.
	adminTimeout = 5 * time.Second
	// logLines are how many lines of a log an error shows.
	logLines = 12
)

// member is a redis-server on a node.
type member struct {
	host    host.Host
	addr    string
	process host.Process
	// admin talks to the server from its own node, so that questions cross no link
	// of the lab and count in nobody's traffic.
	admin *goredis.Client
	// leaving is set before its process is ended on purpose.
	leaving atomic.Bool
}

func (m *member) dir() string { return filepath.Join(m.host.Dir(), Name) }
func (m *member) log() string { return filepath.Join(m.dir(), "redis.log") }

// startMember starts a server that knows nobody and waits until it answers.
func startMember(ctx context.Context, h host.Host, in database.Installation, o options) (*member, error) {
	m := &member{host: h, addr: net.JoinHostPort(h.Addr(), strconv.Itoa(o.port))}
	if err := m.portsFree(o.port); err != nil {
		return nil, err
	}
	// A node's identity is in its nodes.conf. Members that were told to forget one
	// shut it out for a minute, so each membership has a new one.
	if err := os.RemoveAll(m.dir()); err != nil {
		return nil, fmt.Errorf("emptying the directory of redis on %s: %w", h.Name(), err)
	}
	if err := os.MkdirAll(m.dir(), 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of redis on %s: %w", h.Name(), err)
	}
	p, err := h.Start(ctx, host.Command{
		Name: Name, Path: in.Programs["redis-server"], Env: in.Env, Dir: m.dir(), Log: m.log(),
		Args: append([]string{
			"--bind", h.Addr(), "--port", strconv.Itoa(o.port), "--protected-mode", "no",
			"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-announce-ip", h.Addr(),
			// Otherwise a master that gives its last slot away becomes a replica.
			"--cluster-allow-replica-migration", "no",
			"--dir", m.dir(), "--save", "", "--daemonize", "no", "--logfile", "",
		}, o.config...),
	})
	if err != nil {
		return nil, fmt.Errorf("starting redis on %s: %w", h.Name(), err)
	}
	m.process = p
	m.admin = goredis.NewClient(m.adminOptions())
	if err := m.awaitUp(ctx); err != nil {
		return nil, errors.Join(err, m.kill())
	}
	return m, nil
}

func (m *member) adminOptions() *goredis.Options {
	o := nodeOptions(m.addr, settings{timeout: adminTimeout})
	o.Dialer = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		err = m.host.Do(func() error {
			// An address without a name is dialled by the goroutine that asks.
			conn, err = (&net.Dialer{Timeout: adminTimeout}).DialContext(ctx, network, addr)
			return err
		})
		return conn, err
	}
	return o
}

// portsFree tells early, and in words, what redis-server would die of. It asks by
// connecting: a listener of its own, which a program that is being started elsewhere in
// this process holds open for a moment, could be in the server's way.
func (m *member) portsFree(port int) error {
	return m.host.Do(func() error {
		for _, p := range []int{port, port + busOffset} {
			conn, err := net.DialTimeout("tcp4", net.JoinHostPort(m.host.Addr(), strconv.Itoa(p)), adminTimeout)
			if err == nil {
				return errors.Join(m.taken(p), conn.Close())
			}
			if !errors.Is(err, syscall.ECONNREFUSED) {
				return fmt.Errorf("starting redis on %s: trying port %d: %w", m.host.Name(), p, err)
			}
		}
		return nil
	})
}

// ErrPortTaken says that something else listens where a server is to.
var ErrPortTaken = errors.New("the port is taken")

func (m *member) taken(port int) error {
	return advice.With(fmt.Errorf("starting redis on %s: port %d of %s: %w", m.host.Name(), port, m.host.Addr(), ErrPortTaken),
		"end what listens there, or choose another port: database option port")
}

// awaitUp returns when the server answers.
func (m *member) awaitUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, upTimeout, fmt.Errorf("no answer within %v", upTimeout))
	defer cancel()
	for {
		if m.admin.Ping(ctx).Err() == nil {
			return nil
		}
		select {
		case <-m.process.Done():
			return fmt.Errorf("starting redis: %w", m.death())
		case <-ctx.Done():
			return fmt.Errorf("starting redis on %s: %w%s", m.host.Name(), context.Cause(ctx), m.lastLines())
		case <-time.After(poll):
		}
	}
}

// death is how the process ended, with the last lines of its log.
func (m *member) death() error {
	how := m.process.Err()
	if how == nil {
		how = errors.New("exit status 0")
	}
	return fmt.Errorf("redis-server on %s ended: %w%s", m.host.Name(), how, m.lastLines())
}

func (m *member) lastLines() string {
	t := strings.TrimRight(m.process.Tail(logLines), "\n")
	if t == "" {
		return "; its log is empty"
	}
	return "; the last lines of its log:\n" + t
}

// stop ends the server in its own way.
func (m *member) stop(ctx context.Context) error {
	m.leaving.Store(true)
	return errors.Join(m.process.Stop(ctx, stopGrace), m.admin.Close())
}

func (m *member) kill() error {
	m.leaving.Store(true)
	return errors.Join(m.process.Kill(), m.admin.Close())
}
