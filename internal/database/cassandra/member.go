package cassandra

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

const (
	// pollInterval is long because each answer costs a starting member milliseconds of CPU.
	pollInterval = 300 * time.Millisecond
	// stopGrace is the time between SIGTERM and SIGKILL: on SIGTERM a member drains.
	stopGrace = 20 * time.Second
)

type member struct {
	host   host.Host
	config config // changed only by the holder of the member list
	jmx    *jmx
	daemon.Seat
}

func (m *member) Name() string { return m.host.Name() }

func (m *member) dir() string { return m.config.dir }
func (m *member) log() string { return filepath.Join(m.dir(), "system.log") }

func (m *member) configure(ctx context.Context) error {
	if err := m.config.write(ctx, m.host.Files()); err != nil {
		return fmt.Errorf("configuring cassandra on %s: %w", m.host.Name(), err)
	}
	return nil
}

func (c *cluster) launch(ctx context.Context, m *member, joins bool) error {
	if err := m.configure(ctx); err != nil {
		return err
	}
	if err := m.markLog(ctx); err != nil {
		return err
	}
	in := c.Installation(m.Name())
	l, err := librariesOf(ctx, m.host.Files(), in)
	if err != nil {
		return err
	}
	d, err := c.Servers.Start(ctx, m.host, daemon.Spec{
		Command: host.Command{
			Name: Name, Path: l.java, Args: m.config.javaArguments(l, c.ringDelay), Dir: m.dir(), Log: m.log(),
			// One arena for each thread that allocates would double the memory of a small member.
			Env: append([]string{"MALLOC_ARENA_MAX=2"}, in.Env...),
		},
		Ports: []int{m.config.storagePort, m.config.nativePort, m.config.adminPort},
		Grace: stopGrace, Joining: joins,
	})
	if err != nil {
		return err
	}
	m.SetServer(d)
	return nil
}

// markLog writes a line that separates the log of a process from earlier ones.
func (m *member) markLog(ctx context.Context) error {
	line := fmt.Sprintf("%s starting cassandra on %s\n", time.Now().Format("2006-01-02T15:04:05.000"), m.host.Name())
	if err := m.host.Files().Append(ctx, m.log(), []byte(line)); err != nil {
		return fmt.Errorf("writing the log of cassandra on %s: %w", m.host.Name(), err)
	}
	return nil
}

// wipe empties the member's directory, except for the log of an earlier membership.
func (m *member) wipe(ctx context.Context) error {
	entries, err := m.host.Files().List(ctx, m.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if err == nil && e.Path != m.log() {
			err = m.host.Files().Remove(ctx, e.Path)
		}
	}
	if err != nil {
		return fmt.Errorf("emptying the directory of cassandra on %s: %w", m.host.Name(), err)
	}
	return nil
}

// withPacing delays the next call by pollInterval after an error.
func withPacing(ask func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := ask(ctx)
		if err != nil {
			_ = linger.For(ctx, pollInterval) // the next question meets its end
		}
		return err
	}
}

// awaitMember repeats ask until it succeeds, ctx ends or the member's process exits.
func (c *cluster) awaitMember(ctx context.Context, on *daemon.Daemon, ask func(context.Context) error) error {
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-on.Done():
			if failed := c.Err(); failed != nil {
				return failed
			}
			return fmt.Errorf("%s on %s has ended: %w%s", on.Name(), on.Host.Name(), err, on.LastLines())
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(pollInterval):
		}
	}
}

func (m *member) checkServing(ctx context.Context) error {
	var v struct {
		OperationMode          string
		NativeTransportRunning bool
	}
	if err := m.jmx.read(ctx, storageService, &v, "OperationMode", "NativeTransportRunning"); err != nil {
		return err
	}
	if v.OperationMode != modeNormal || !v.NativeTransportRunning {
		return fmt.Errorf("%w: %s is %s, serving clients %t", database.ErrNotReady, m.host.Name(), v.OperationMode, v.NativeTransportRunning)
	}
	return nil
}
