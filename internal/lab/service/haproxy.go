package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skerry/internal/install"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
)

// Recipe installs Debian's HAProxy.
var Recipe = install.Recipe{
	Name:     "haproxy",
	Summary:  "HAProxy, which balances for service: central",
	Wanted:   install.ByTests,
	Packages: []string{"haproxy/sid"}, Closure: true,
	Programs:    []string{"haproxy"},
	VersionArgs: []string{"-v"},
	// "HAProxy version 2.6.12-1+deb12u4 2024/...".
	Version: install.MatchVersion(`HAProxy version ([0-9][^ \n]*)`),
}

// FindBalancer locates the balancer of a service, if it needs one.
func FindBalancer(ctx context.Context, s topology.Service) (install.Installation, error) {
	if s.Kind != topology.Central {
		return install.Installation{}, nil
	}
	dir, err := install.DefaultDir()
	if err != nil {
		return install.Installation{}, err
	}
	in, err := install.Store{Dir: dir}.Find(ctx, Recipe, "")
	if err != nil {
		return in, fmt.Errorf("topology service: %w", err)
	}
	return in, nil
}

const (
	// balancerTimeout bounds the time for HAProxy to listen.
	balancerTimeout = 20 * time.Second
	balancerPoll    = 20 * time.Millisecond
)

// startBalancer starts HAProxy and waits until it listens.
func (r *Controller) startBalancer(ctx context.Context) error {
	on := r.Hosts[r.Plan.Balancer]
	dir := filepath.Join(on.Dir(), "haproxy")
	if err := on.Files().MakeDir(ctx, dir); err != nil {
		return fmt.Errorf("create balancer directory: %w", err)
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := files.WriteText(ctx, on.Files(), file, r.Plan.haproxyConfig()); err != nil {
		return fmt.Errorf("configure balancer: %w", err)
	}
	p, err := on.Start(ctx, host.Command{
		Name: "haproxy", Path: r.Balancer.Programs["haproxy"], Env: r.Balancer.Env,
		Args: []string{"-db", "-f", file}, Dir: dir, Log: filepath.Join(dir, "haproxy.log"),
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBalancer, err)
	}
	ctx, cancel := context.WithTimeout(ctx, balancerTimeout)
	defer cancel()
	for {
		err := host.CheckAccepts(ctx, on, hostPort(r.Plan.Front[0], r.Plan.Shared[r.Plan.Ports[0]]), checkTimeout)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%w: %w\n%s", ErrBalancer, errors.Join(p.Err(), err), p.Tail(10))
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%w: %w\n%s", ErrBalancer, err, p.Tail(10)), p.Kill())
		case <-time.After(balancerPoll):
		}
	}
}

// haproxyConfig is HAProxy's configuration. The shared service selects members that accept connections; the service of
// a single member has no alternative.
func (p Plan) haproxyConfig() string {
	var b strings.Builder
	b.WriteString("defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n")
	front, algorithm, check := p.Front[0], "random", ""
	if p.Service.Balance == roundRobin {
		algorithm = "roundrobin"
	}
	if p.Service.Check > 0 {
		check = fmt.Sprintf(" check inter %d fall 1 rise 1", max(1, p.Service.Check.Milliseconds()))
	}
	for _, inside := range p.Ports {
		fmt.Fprintf(&b, "\nlisten all-%d\n  bind %s\n  balance %s\n", inside, hostPort(front, p.Shared[inside]), algorithm)
		for _, n := range p.Nodes {
			if n.Member != nil {
				fmt.Fprintf(&b, "  server %s %s%s\n", n.Name, hostPort(n.Member.Listen, inside), check)
			}
		}
	}
	for _, n := range p.Nodes {
		if n.Member == nil {
			continue
		}
		for _, inside := range slices.Sorted(maps.Keys(n.Member.Ports)) {
			fmt.Fprintf(&b, "\nlisten %s-%d\n  bind %s\n  server %s %s\n", n.Name, inside,
				hostPort(front, n.Member.Ports[inside]), n.Name, hostPort(n.Member.Listen, inside))
		}
	}
	return b.String()
}
