// Package hydralab brings a topology to life with a deployment of Hydra on it, and keeps
// both up until it is told to end.
//
//	topology ─► lab up ─► layout ─► members, balancers, wallets, DNS ─► door ─► until the end, and all of it down
package hydralab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"skerry/internal/lab"
	"skerry/systems/hydra/deploy"
)

// dnsPort is where resolvers ask.
const dnsPort = 53

// glance is how often a lab is looked for that another command may end.
const glance = 500 * time.Millisecond

// Config is what to bring up.
type Config struct {
	Lab lab.Config
	// Hydra is the deployment. Its program is the lab's, its members need no secrets to serve
	// inside the lab, and its clouds have wallets.
	Hydra deploy.Options
	// Restart is how long a process that ended stays away, 0 for ever.
	Restart time.Duration
	// Door is where on this machine a browser finds the wallet, HOST:PORT; "" for nowhere.
	Door string
	Log  *slog.Logger
}

// Up is a lab with a deployment on it.
type Up struct {
	Lab        *lab.Lab
	Layout     deploy.Layout
	Deployment *deploy.Deployment
	// Door is the URL of the wallet for this machine's browser, "" without one.
	Door string
}

// Run brings the lab and the deployment up, tells started of them, and waits until ctx ends
// or another command ends the lab. Nothing is left when it returns.
func Run(ctx context.Context, c Config, started func(Up) error) (err error) {
	l, err := lab.Up(ctx, c.Lab)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, down(ctx, l)) }()
	up := Up{Lab: l}
	if up.Layout, err = deploy.OnHosts(l.Hosts()); err != nil {
		return err
	}
	if err := resolveBy(ctx, l, up.Layout); err != nil {
		return err
	}
	o := c.Hydra
	o.Exe, o.Insecure, o.Wallet, o.DNSPort = c.Lab.Exe, true, true, dnsPort
	if up.Deployment, err = deploy.Launch(ctx, up.Layout, o, c.Restart, c.Log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.Deployment.Stop(context.WithoutCancel(ctx))) }()
	if up.Layout.Names != nil && c.Door != "" {
		door, err := deploy.OpenDoor(ctx, c.Door, up.Layout.Names, up.Deployment.DNS(), o.Zone, deploy.PortLB)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, door.Close()) }()
		up.Door = door.URL()
	}
	if err := started(up); err != nil {
		return err
	}
	return whileUp(ctx, c, l)
}

// whileUp waits until it is told to end, or the lab was ended by another command.
func whileUp(ctx context.Context, c Config, l *lab.Lab) error {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := lab.OpenNode(ctx, c.Lab.StateDir, l.Name(), l.Hosts()[0].Name()); errors.Is(err, lab.ErrNotFound) {
			c.Log.Info("the lab was ended by another command", "lab", l.Name())
			return nil
		}
	}
}

// down ends a lab; one that was ended by another command is gone already.
func down(ctx context.Context, l *lab.Lab) error {
	err := l.Down(context.WithoutCancel(ctx))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, lab.ErrNotFound) {
		return nil
	}
	return err
}

// resolveBy has a lab's nodes ask the deployment's DNS server.
func resolveBy(ctx context.Context, l *lab.Lab, layout deploy.Layout) error {
	if layout.Names == nil {
		return nil
	}
	at, err := netip.ParseAddr(layout.Names.Addr())
	if err != nil {
		return fmt.Errorf("where the DNS server is: %w", err)
	}
	return l.Resolve(ctx, at)
}
