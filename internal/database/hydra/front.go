package hydra

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"skerry/internal/database/daemon"
	"skerry/internal/machine/host"
	"skerry/systems/hydra/deploy"
	"skerry/systems/hydra/hydraclient"
	"skerry/systems/hydra/wallet"
)

// zone is the wallet's name.
const zone = "hydra.test"

// startFronts starts what stands between clients and members where operations go through the wallet: in each
// cloud a balancer and the wallet, on the node of its last member, and a DNS server with the witness, or with the
// first member where there is none.
//
//	client ─► DNS ─► a cloud's balancer ─► its wallet ─► its balancer ─► member
func (c *cluster) startFronts(ctx context.Context) error {
	if c.options.through != throughWallet {
		return nil
	}
	layout := deploy.Layout{}
	for _, m := range c.All() {
		if m.witness {
			layout.DNS = m.host
			continue
		}
		i := slices.IndexFunc(layout.Clouds, func(o deploy.Cloud) bool { return o.Name == m.cloud })
		if i < 0 {
			layout.Clouds, i = append(layout.Clouds, deploy.Cloud{Name: m.cloud}), len(layout.Clouds)
		}
		of := &layout.Clouds[i]
		of.Members, of.Edge = append(of.Members, m.host), m.host
	}
	if layout.DNS == nil {
		layout.DNS = layout.Clouds[0].Members[0]
	}
	services, err := deploy.PlanFronts(ctx, layout, deploy.Options{Zone: zone, Insecure: true, Wallet: true})
	if err != nil {
		return fmt.Errorf("planning the way through the wallet: %w", err)
	}
	for _, s := range services {
		if err := c.startFront(ctx, s); err != nil {
			return err
		}
		if s.Kind == deploy.DNSServer {
			c.walletDNS = deploy.HostPort(s.Host, deploy.PortDNS)
		}
	}
	return nil
}

// startFront starts one service, and waits until it is ready.
func (c *cluster) startFront(ctx context.Context, s deploy.Service) error {
	at, err := url.Parse(s.URL)
	if err != nil {
		return fmt.Errorf("where %s listens: %w", s.Name, err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		return fmt.Errorf("where %s listens: %w", s.Name, err)
	}
	c.ReportProgress("starting %s on %s", s.Name, s.Host.Name())
	d, err := c.Servers.Start(ctx, s.Host, daemon.Spec{
		Command: host.Command{
			Name: s.Name, Path: c.Env.Installation.Programs[program], Env: c.Env.Installation.Env,
			Dir: s.Host.Dir(), Log: filepath.Join(s.Host.Dir(), s.Name+".log"), Args: s.Args,
		},
		Ports: []int{port},
	})
	if err != nil {
		return err
	}
	return d.Await(ctx, readyTimeout, func(ctx context.Context) error { return s.CheckReady(ctx, hydraclient.Config{}) })
}

// tableNames are those that operations end up in.
func (c *cluster) tableNames() []string {
	if c.options.through == throughWallet {
		return []string{wallet.Accounts, wallet.Entries}
	}
	return []string{defaultTable}
}

// countRows counts the records of the benchmark's table as a member tells: of a wallet its customers' accounts.
func (c *cluster) countRows(ctx context.Context, m *member) (int64, error) {
	if c.options.through == throughWallet {
		sum, _, err := wallet.New(m.admin, time.Now).Sum(ctx)
		return int64(sum.Accounts), err
	}
	return m.admin.Count(ctx, defaultTable)
}

// lookupWallet is where the wallet is, as a DNS server says to whoever connects: no answer is kept.
func lookupWallet(ctx context.Context, names string) ([]string, error) {
	var d net.Dialer
	found, err := deploy.Lookup(ctx, d.DialContext, names, zone)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(found))
	for i, a := range found {
		all[i] = net.JoinHostPort(a.String(), strconv.Itoa(deploy.PortLB))
	}
	return all, nil
}
