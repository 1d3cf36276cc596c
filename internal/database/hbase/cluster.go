package hbase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
)

// cluster is a running HBase.
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

func (c *cluster) ReportProgress(format string, args ...any) {
	c.Env.ReportProgress(Name, format, args...)
}

// firstNode is the node of master, NameNode and ZooKeeper.
func (c *cluster) firstNode() host.Host { return c.Env.Nodes[0] }

// activeMembers are the members that are not halted.
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

// pollInterval is how often a state that becomes true is asked for; an answer takes the
// servers some milliseconds of CPU.
const pollInterval = 200 * time.Millisecond

// awaitState asks until the answer is nil. It gives up when a server ends by itself, one of
// those that are joining too, and with ctx; so does a question that is under way.
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

// withServers is a context that ends when a channel is closed or one of the servers ends.
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

// Properties implements database.Cluster.
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

// Stop implements database.Cluster. The servers are killed: nothing of their data is
// needed any more, and each, asked to end, would write it back to others that are ending
// too.
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
