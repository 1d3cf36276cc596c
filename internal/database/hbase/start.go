package hbase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

const (
	// readyTimeout bounds a start: eight nodes on two slow cores, and half as much.
	readyTimeout = 5 * time.Minute
	// dialTimeout bounds a question to ZooKeeper.
	dialTimeout = 5 * time.Second
)

func start(ctx context.Context, env database.Env) (database.Cluster, error) {
	o, err := parseOptions(len(env.Nodes), env.Options)
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: daemon.NewCluster[host.Host](Name, env), options: o, halted: make(map[string]bool), exclude: make(map[string]bool), nameNodeReady: make(chan struct{})}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%w after %v", database.ErrNotReady, readyTimeout))
	defer cancel()
	if err := c.start(ctx); err != nil {
		if ctx.Err() != nil && context.Cause(ctx) != context.Canceled { // whoever just cancels knows why
			err = fmt.Errorf("%w%s", err, c.describeUnreachable(context.WithoutCancel(ctx)))
		}
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	for _, h := range c.Env.Nodes {
		if err := c.prepare(ctx, h); err != nil {
			return err
		}
	}
	var err error
	fallback := filepath.Join(c.firstNode().Dir(), Name)
	if c.jar, err = buildHostOn(c.firstNode()).bridgeClasses(ctx, c.Env.Installation.Programs["java"], c.Env.Installation.Dir, fallback); err != nil {
		return err
	}
	c.ReportProgress("starting %d nodes of HBase", len(c.Env.Nodes))
	if err := c.startAll(ctx); err != nil {
		return err
	}
	for _, h := range c.Env.Nodes {
		c.Add(h)
	}
	c.ReportProgress("waiting for the master")
	if err := c.awaitState(ctx, c.Ready); err != nil {
		return fmt.Errorf("starting hbase: %w", err)
	}
	c.ReportProgress("creating the table")
	if err := c.admin.createTable(ctx, c.options.durability, c.options.regions*len(c.Env.Nodes)); err != nil {
		return fmt.Errorf("starting hbase: %w", err)
	}
	if err := c.awaitState(ctx, c.checkBalanced); err != nil {
		return fmt.Errorf("starting hbase: %w", err)
	}
	c.formed = true
	return nil
}

// startAll starts every server, and gives up as soon as one ends by itself.
func (c *cluster) startAll(ctx context.Context) error {
	watch, ctx := errgroup.WithContext(ctx)
	begun := make(chan struct{})
	watch.Go(func() error {
		select {
		case <-c.Servers.Failed():
			return fmt.Errorf("starting hbase: %w", c.Servers.Err())
		case <-begun:
			return nil
		}
	})
	watch.Go(func() error {
		defer close(begun)
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return c.startFirst(ctx) })
		g.Go(func() error { return c.startAdmin(ctx) })
		for _, h := range c.Env.Nodes {
			g.Go(func() error {
				_, err := c.startServers(ctx, h, false)
				return err
			})
		}
		return g.Wait()
	})
	return watch.Wait()
}

// describeUnreachable names the servers that do not listen, with the last lines of their logs: what a
// start that took too long was waiting for.
func (c *cluster) describeUnreachable(ctx context.Context) string {
	var text strings.Builder
	for _, h := range c.Env.Nodes {
		for _, d := range c.Servers.RunningOn(h.Name()) {
			if checkListening(ctx, h, ports[d.Name()]) != nil {
				fmt.Fprintf(&text, "\n%s on %s does not listen%s", d.Name(), h.Name(), d.LastLines())
			}
		}
	}
	return text.String()
}

// hostnameFile is where a machine tells its name, which nodes may share.
const hostnameFile = "/proc/sys/kernel/hostname"

// prepare writes a node's files; what another run left is removed.
func (c *cluster) prepare(ctx context.Context, h host.Host) error {
	s, on := c.site(h), h.Files()
	hostname, _ := files.Read(ctx, on, hostnameFile) // unknown, it is not listed
	s.hosts = hostsText(h, strings.TrimSpace(hostname), c.Env.Nodes)
	if err := on.Remove(ctx, s.dir); err != nil {
		return fmt.Errorf("emptying the directory of hbase on %s: %w", h.Name(), err)
	}
	for _, d := range []string{"tmp", "zookeeper", "shared"} {
		if err := on.MakeDir(ctx, filepath.Join(s.dir, d)); err != nil {
			return fmt.Errorf("making the directory of hbase on %s: %w", h.Name(), err)
		}
	}
	err := s.write(ctx, on)
	if err == nil && h.Name() == c.firstNode().Name() {
		err = files.WriteText(ctx, on, s.exclude, "")
	}
	if err != nil {
		return fmt.Errorf("configuring hbase on %s: %w", h.Name(), err)
	}
	return nil
}

// site is what a node's files are generated from.
func (c *cluster) site(h host.Host) site {
	first := filepath.Join(c.firstNode().Dir(), Name)
	return site{
		options: c.options, jar: c.jar, master: c.firstNode().Addr(), addr: h.Addr(), dir: filepath.Join(h.Dir(), Name),
		shared: filepath.Join(first, "shared"), exclude: filepath.Join(first, "exclude"),
	}
}

// startAdmin starts the bridge that the cluster is asked through.
func (c *cluster) startAdmin(ctx context.Context) error {
	h := c.firstNode()
	s := c.site(h)
	settings := append(append(s.coreSite(), s.hdfsSite()...), s.hbaseSite()...)
	flags, ends := c.archiveSettings(ctx, filepath.Join(s.dir, sharedClasses))
	run := bridgeCommand(c.Env.Installation.Programs["java"], classpath(c.jar, c.Env.Installation.Dir), s.hostsFile(), c.options.client, flags, settings)
	b, err := startBridgeOn(ctx, h, run, s.dir, filepath.Join(s.dir, "bridge.log"), ends)
	if err != nil {
		return err
	}
	c.admin = admin{b}
	return nil
}
