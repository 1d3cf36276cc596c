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

	"skerry/internal/install"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
)

// Config is the environment of a service.
type Config struct {
	Plan Plan
	// Hosts are the nodes, in the plan's order.
	Hosts []host.Host
	// Machine creates bridges and rules.
	Machine machine.Services
	// Balancer is an installation of Recipe, for central.
	Balancer install.Installation
	Log      *slog.Logger
}

type Controller struct {
	Config
	mtu     int // of the containers' network
	cancel  context.CancelFunc
	checker sync.WaitGroup

	mu      sync.Mutex
	serving serving
	failed  error
}

// Start starts the service. Its containers, devices, rules and processes end with the nodes.
func Start(ctx context.Context, c Config) (*Controller, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	r := &Controller{Config: c}
	if err := r.setUp(ctx); err != nil {
		return nil, fmt.Errorf("create service %s (%s): %w", c.Plan.Service.Name, c.Plan.Service.Kind, err)
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if r.checksMembers() {
		r.checker.Go(func() { r.watchMembers(ctx) })
	}
	return r, nil
}

func (r *Controller) setUp(ctx context.Context) (err error) {
	if r.mtu, err = r.Machine.MTU(ctx); err != nil {
		return err
	}
	if r.Plan.Overlay() {
		r.mtu -= machine.VXLANHeader
	}
	if err := r.Machine.MakeBridges(ctx, r.Plan.bridges(r.mtu)); err != nil {
		return err
	}
	if err := r.Machine.SetRules(ctx, r.Plan.rules(nil)); err != nil {
		return err
	}
	if r.Plan.Service.Kind == topology.Central {
		return r.startBalancer(ctx)
	}
	return nil
}

const roundRobin = "round-robin"

// MTU is the MTU of the containers' network in bytes; 0 without one.
func (r *Controller) MTU() int {
	if !r.Plan.Contained() {
		return 0
	}
	return r.mtu
}

// checksMembers reports whether this process probes members; HAProxy does so itself.
func (r *Controller) checksMembers() bool {
	return r.Plan.Overlay() && r.Plan.Service.Check > 0 && len(r.Plan.Ports) > 0
}

// checkTimeout bounds the time for a member to accept a connection.
const checkTimeout = time.Second

// watchMembers probes the members periodically, on their own nodes as Kubernetes' kubelet does, and directs the shared
// service to those that answer.
func (r *Controller) watchMembers(ctx context.Context) {
	tick := time.NewTicker(r.Plan.Service.Check)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := r.probeMembers(ctx)
		if ctx.Err() != nil || r.rulesMatch(now) {
			continue
		}
		if err := r.Machine.SetRules(ctx, r.Plan.rules(now)); err != nil {
			r.fail(err)
			return
		}
		r.mu.Lock()
		r.serving = now
		r.mu.Unlock()
		r.Log.Debug("service", "name", r.Plan.Service.Name, "serving", len(now))
	}
}

// probeMembers returns the members that accept connections.
func (r *Controller) probeMembers(ctx context.Context) serving {
	s := serving{}
	for i, n := range r.Plan.Nodes {
		if n.Member == nil {
			continue
		}
		if host.CheckAccepts(ctx, r.Hosts[i], hostPort(n.Member.Listen, r.Plan.Ports[0]), checkTimeout) == nil {
			s[n.Name] = true
		}
	}
	return s
}

func hostPort(a netip.Addr, port int) string {
	return net.JoinHostPort(a.String(), strconv.Itoa(port))
}

// rulesMatch reports whether the rules already select these members.
func (r *Controller) rulesMatch(now serving) bool {
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

func (r *Controller) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = errors.Join(r.failed, err)
}

// Close stops probing. The service ends with the nodes. The error is that of a failed change of rules.
func (r *Controller) Close() error {
	r.cancel()
	r.checker.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
