package main

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

// dnsPort is the port that resolvers use.
const dnsPort = 53

// labInterval is the time between checks that the lab exists.
const labInterval = 500 * time.Millisecond

// labConfig is a lab with a deployment of Hydra on it.
type labConfig struct {
	Lab lab.Config
	// Hydra is the deployment. Its members serve without secrets inside the lab, and its clouds have wallets.
	Hydra deploy.Options
	// Restart is the time after which an ended process restarts, 0 for never.
	Restart time.Duration
	// Door is the address of the wallet for browsers on this machine, HOST:PORT; "" for none.
	Door string
	Log  *slog.Logger
}

// runningLab is a lab with a deployment on it.
type runningLab struct {
	Lab        *lab.Lab
	Layout     deploy.Layout
	Deployment *deploy.Deployment
	// Door is the URL of the wallet for this machine's browser, "" without one.
	Door string
}

// runLab starts the lab and the deployment, calls started, and waits until ctx ends or another command ends the lab.
// It removes both before it returns.
//
//	topology ─► lab ─► layout ─► members, balancers, wallets, DNS ─► door ─► end of ctx ─► removal
func runLab(ctx context.Context, c labConfig, started func(runningLab) error) (err error) {
	l, err := lab.Up(ctx, c.Lab)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeLab(ctx, l)) }()
	up := runningLab{Lab: l}
	if up.Layout, err = deploy.LayoutOnHosts(l.Hosts()); err != nil {
		return err
	}
	if err := useDNS(ctx, l, up.Layout); err != nil {
		return err
	}
	o := c.Hydra
	o.Insecure, o.Wallet, o.DNSPort = true, true, dnsPort
	if up.Deployment, err = deploy.Launch(ctx, up.Layout, o, c.Restart, c.Log); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, up.Deployment.Stop(context.WithoutCancel(ctx))) }()
	if up.Layout.DNS != nil && c.Door != "" {
		door, err := deploy.OpenDoor(ctx, c.Door, up.Layout.DNS, up.Deployment.DNS(), o.Zone, deploy.PortLB)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, door.Close()) }()
		up.Door = door.URL()
	}
	if err := started(up); err != nil {
		return err
	}
	return waitLab(ctx, c, l)
}

// waitLab waits until ctx ends, or another command ends the lab.
func waitLab(ctx context.Context, c labConfig, l *lab.Lab) error {
	tick := time.NewTicker(labInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if _, err := lab.OpenNode(ctx, c.Lab.StateDir, l.Name(), l.Hosts()[0].Name()); errors.Is(err, lab.ErrNotFound) {
			c.Log.Info("another command removed the lab", "lab", l.Name())
			return nil
		}
	}
}

// removeLab removes a lab. It is no error if another command has removed it already.
func removeLab(ctx context.Context, l *lab.Lab) error {
	err := l.Down(context.WithoutCancel(ctx))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, lab.ErrNotFound) {
		return nil
	}
	return err
}

// useDNS makes the lab's nodes resolve names by the deployment's DNS server.
func useDNS(ctx context.Context, l *lab.Lab, layout deploy.Layout) error {
	if layout.DNS == nil {
		return nil
	}
	at, err := netip.ParseAddr(layout.DNS.Addr())
	if err != nil {
		return fmt.Errorf("parse address of DNS server: %w", err)
	}
	return l.SetResolver(ctx, at)
}
