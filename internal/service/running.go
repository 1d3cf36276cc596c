package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/host"
	"skerry/internal/install"
	"skerry/internal/netns"
	"skerry/internal/topology"
)

// Config is what a service is made on.
type Config struct {
	Plan Plan
	// Hosts are the nodes, in the plan's order.
	Hosts []host.Host
	// Space is the path that the namespace of a node's container is to have.
	Space func(node string) string
	// Settings applies kernel settings to the calling thread's namespace.
	Settings func() error
	// Balancer is an installation of Recipe, for central.
	Balancer install.Installation
	Log      *slog.Logger
}

// works is a service being made.
type works struct {
	Config
	mtu int // of the containers' network
}

// Running is a service at work.
type Running struct {
	works
	cancel  context.CancelFunc
	checker sync.WaitGroup

	mu      sync.Mutex
	serving serving
	failed  error
}

// Start makes the service. What it makes are namespaces at Config.Space, devices and rules
// in these and in the nodes', and processes of the nodes: all go with the nodes.
func Start(ctx context.Context, c Config) (*Running, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	r := &Running{works: works{Config: c}}
	if err := r.make(ctx); err != nil {
		return nil, fmt.Errorf("make the service %s (%s): %w", c.Plan.Service.Name, c.Plan.Service.Kind, err)
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if r.watched() {
		r.checker.Go(func() { r.check(ctx) })
	}
	return r, nil
}

func (r *Running) make(ctx context.Context) error {
	for _, h := range r.Hosts {
		mtu, err := underlayMTU(h.Netns())
		if err != nil {
			return err
		}
		if mtu > 0 && (r.mtu == 0 || mtu < r.mtu) {
			r.mtu = mtu
		}
	}
	if r.Plan.Overlay() {
		r.mtu -= vxlanHeader
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := range r.Plan.Nodes {
		g.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			if err := r.network(i); err != nil {
				return fmt.Errorf("node %s: %w", r.Plan.Nodes[i].Name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := r.rule(nil); err != nil {
		return err
	}
	if r.Plan.Service.Kind == topology.Central {
		return r.balance(ctx)
	}
	return nil
}

// rule puts the rules of all namespaces in force.
func (r *Running) rule(s serving) error {
	set := func(path string, rules rules) error {
		return netns.Do(path, func() error { return rules.apply(r.Plan.Service.Balance == roundRobin) })
	}
	for i, n := range r.Plan.Nodes {
		err := set(r.Hosts[i].Netns(), r.Plan.nodeRules(n, s))
		if err == nil && n.Member != nil && r.Plan.Contained() {
			err = set(r.Space(n.Name), r.Plan.insideRules(s))
		}
		if err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
	}
	return nil
}

const roundRobin = "round-robin"

// MTU is that of the containers' network, in bytes; 0 where there is none.
func (r *Running) MTU() int {
	if !r.Plan.Contained() {
		return 0
	}
	return r.mtu
}

// watched tells whether members are tried from here: HAProxy does so by itself.
func (r *Running) watched() bool {
	return r.Plan.Overlay() && r.Plan.Service.Check > 0 && len(r.Plan.Ports) > 0
}

// checkTimeout bounds how long a member may take to accept a connection.
const checkTimeout = time.Second

// check tries the members again and again, on their own nodes as Kubernetes' kubelet does,
// and has the service for all members lead to those that answer.
func (r *Running) check(ctx context.Context) {
	tick := time.NewTicker(r.Plan.Service.Check)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := r.try()
		if r.known(now) {
			continue
		}
		if err := r.rule(now); err != nil {
			r.fail(err)
			return
		}
		r.mu.Lock()
		r.serving = now
		r.mu.Unlock()
		r.Log.Debug("service", "name", r.Plan.Service.Name, "serving", len(now))
	}
}

// try returns the members that accept connections.
func (r *Running) try() serving {
	s := serving{}
	for i, n := range r.Plan.Nodes {
		if n.Member == nil {
			continue
		}
		err := r.Hosts[i].Do(func() error {
			conn, err := net.DialTimeout("tcp4", target(n.Member.Listen, r.Plan.Ports[0]), checkTimeout)
			if err != nil {
				return err
			}
			return conn.Close()
		})
		if err == nil {
			s[n.Name] = true
		}
	}
	return s
}

func target(a netip.Addr, port int) string {
	return net.JoinHostPort(a.String(), strconv.Itoa(port))
}

// known tells whether the rules lead to those members already.
func (r *Running) known(now serving) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(now) != len(r.serving) {
		return false
	}
	for n := range now {
		if !r.serving[n] {
			return false
		}
	}
	return true
}

// Serving are the nodes whose members answered when they were tried last.
func (r *Running) Serving() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.serving
}

func (r *Running) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = errors.Join(r.failed, err)
}

// Close stops looking after the members. What was made goes with the nodes. The error is
// that of a check that could not change the rules.
func (r *Running) Close() error {
	r.cancel()
	r.checker.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
