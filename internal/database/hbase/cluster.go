package hbase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

type cluster struct {
	*daemon.Cluster[host.Host]
	options options
	jar     string // the bridge's classes
	admin   admin
	formed  bool // its start came to its end

	nameNodeReady chan struct{} // closed when the NameNode takes connections

	mu      sync.Mutex // of the fields below
	halted  map[string]bool
	exclude map[string]bool // addresses of DataNodes that are to leave or have left
	// standing is the bridge for clients of a cluster that is used again, nil before.
	sharedBridge *sharedBridge
}

var _ database.Cluster = (*cluster)(nil)

func (c *cluster) firstNode() host.Host { return c.Env.Nodes[0] }

// activeMembers returns the members that are not halted.
func (c *cluster) activeMembers() []host.Host {
	return c.Select(func(h host.Host) bool { return !c.isHalted(h) })
}

func (c *cluster) isHalted(h host.Host) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halted[h.Name()]
}

func (c *cluster) forgetMember(h host.Host) {
	c.Drop(c.On(h.Name()))
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.halted, h.Name())
}

func (c *cluster) setHalted(h host.Host, halted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halted[h.Name()] = halted
}

// pollInterval is the time between polls; an answer costs the servers some milliseconds of CPU.
const pollInterval = 200 * time.Millisecond

// awaitState repeats ask until it succeeds, a server exits unexpectedly, or ctx ends.
func (c *cluster) awaitState(ctx context.Context, ask func(context.Context) error, joining ...*daemon.Daemon) error {
	asking, stop := withServers(ctx, c.Servers.Failed(), joining)
	defer stop()
	for {
		err := ask(asking)
		if err == nil {
			return nil
		}
		for _, d := range joining {
			if !d.Running() {
				return d.ConfirmMember()
			}
		}
		select {
		case <-c.Servers.Failed():
			return c.Servers.Err()
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-asking.Done():
		case <-time.After(pollInterval):
		}
	}
}

// withServers returns a context that ends when the channel closes or one of the servers exits.
func withServers(ctx context.Context, closed <-chan struct{}, servers []*daemon.Daemon) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ends := []<-chan struct{}{closed}
	for _, d := range servers {
		ends = append(ends, d.Done())
	}
	var watchers sync.WaitGroup
	for _, end := range ends {
		watchers.Go(func() {
			select {
			case <-end:
				cancel()
			case <-ctx.Done():
			}
		})
	}
	return ctx, func() {
		cancel()
		watchers.Wait()
	}
}

func (c *cluster) Properties() map[string]string {
	p := map[string]string{
		PropQuorum:    c.firstNode().Addr() + ":" + strconv.Itoa(portZooKeeper),
		PropFamily:    family,
		PropJava:      c.Env.Installation.Programs["java"],
		PropClassPath: classpath(c.jar, c.Env.Installation.Dir),
		PropHosts:     c.site(c.firstNode()).hostsFile(),
		PropHeap:      strconv.FormatInt(c.options.client/mib, 10),
	}
	if addr := c.sharedBridgeAddr(); addr != "" {
		p[PropBridge] = addr
	}
	return p
}

// Stop implements database.Cluster with SIGKILL: a graceful stop would write to servers that are ending.
func (c *cluster) Stop(ctx context.Context) error {
	var errs []error
	if c.admin.bridge != nil {
		errs = append(errs, c.admin.Close())
	}
	if c.sharedBridge != nil {
		errs = append(errs, c.sharedBridge.Close())
	}
	nodes := slices.Clone(c.Env.Nodes)
	for _, h := range c.All() {
		if !slices.ContainsFunc(nodes, func(n host.Host) bool { return n.Name() == h.Name() }) {
			nodes = append(nodes, h)
		}
	}
	for _, h := range nodes {
		for _, d := range c.Servers.RunningOn(h.Name()) {
			errs = append(errs, d.Kill())
		}
	}
	return errors.Join(append(errs, c.Servers.Stop(ctx))...)
}

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
	c := &cluster{Cluster: daemon.NewCluster[host.Host](Name, env), options: o,
		halted: make(map[string]bool), exclude: make(map[string]bool), nameNodeReady: make(chan struct{})}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("%w after %v", database.ErrNotReady, readyTimeout))
	defer cancel()
	if err := c.start(ctx); err != nil {
		if ctx.Err() != nil && context.Cause(ctx) != context.Canceled { // a plain cancellation needs no reason
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
	if err := c.admin.createTable(ctx, table, family, c.options.durability, c.options.regions*len(c.Env.Nodes)); err != nil {
		return fmt.Errorf("starting hbase: %w", err)
	}
	if err := c.awaitState(ctx, c.checkBalanced); err != nil {
		return fmt.Errorf("starting hbase: %w", err)
	}
	c.formed = true
	return nil
}

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

// hostnameFile contains the machine's name, which nodes may share.
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
			return fmt.Errorf("creating the directory of hbase on %s: %w", h.Name(), err)
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

func (c *cluster) site(h host.Host) site {
	first := filepath.Join(c.firstNode().Dir(), Name)
	return site{
		options: c.options, jar: c.jar, master: c.firstNode().Addr(), addr: h.Addr(), dir: filepath.Join(h.Dir(), Name),
		shared: filepath.Join(first, "shared"), exclude: filepath.Join(first, "exclude"),
	}
}

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
