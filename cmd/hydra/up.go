package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/cmd/internal/labprep"
	"skerry/internal/install"
	"skerry/internal/kernel/rootless"
	"skerry/internal/lab"
	"skerry/internal/topology"
	"skerry/systems/hydra/deploy"
)

func newUp(a *cli.App) *cobra.Command {
	var up upCommand
	c := &cobra.Command{
		Use:   "up TOPOLOGY",
		Short: "Start a complete deployment on a lab",
		Long: "Create a lab from a topology and start Hydra on it. Every site with three or more nodes is a cloud. Its last node has\n" +
			"the load balancer and the wallet; its other nodes are members that share an SQLite database. The first node of the\n" +
			"first other site is the witness, and the last node there is the DNS server of all nodes. The wallet's page is at\n" +
			"--door for a browser on this machine. `skerry lab exec` runs clients in the lab, and `skerry lab set` disconnects a\n" +
			"cloud. A process that is killed restarts after --restart. Ctrl-C stops all processes and removes the lab.",
		Example: `  hydra up topologies/two-clouds.yaml
  hydra up topologies/two-clouds.yaml --scale 0 --name near --secure
  skerry lab exec -l hydra third-2 -- curl -s http://hydra.test:8080/api/accounts
  skerry lab set -l hydra 'aws-*' down=true      disconnects the cloud; down=false reconnects it`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return up.run(cmd.Context(), a, args[0])
		},
	}
	up.flags(c)
	return c
}

// upCommand holds the flags of the command.
type upCommand struct {
	c         labConfig
	stateDir  string
	keys      string
	databases []string
	asJSON    bool
}

func (up *upCommand) run(ctx context.Context, a *cli.App, file string) (err error) {
	c := &up.c
	if c.Lab.Topology, err = topology.Load(file, lab.CheckOverlay); err != nil {
		return fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	if c.Hydra.Databases, err = databasesOf(up.databases); err != nil {
		return err
	}
	if err := labprep.Prepare(ctx, a, up.stateDir); err != nil {
		return err
	}
	if c.Lab.Exe, err = install.Skerry.Find(); err != nil {
		return err
	}
	if c.Hydra.Exe, err = os.Executable(); err != nil {
		return fmt.Errorf("locate this program: %w", err)
	}
	if c.Lab.Name == "" {
		c.Lab.Name = lab.SanitizeName(c.Lab.Topology.Name)
	}
	if c.Hydra.Secure {
		var remove func() error
		if c.Hydra.Dir, remove, err = openDirectory(up.keys); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
	}
	// Other commands can change the links of the lab. A lab without root is in the user namespace of this command, and
	// ends with it.
	c.Lab.Ephemeral = rootless.Inside()
	c.Lab.StateDir, c.Lab.Log, c.Log = up.stateDir, a.Log, a.Log
	a.LogAtInfo()
	return runLab(ctx, *c, func(there runningLab) error {
		s := describe(there.Deployment, c.Hydra)
		s.Door = there.Door
		return showDeployment(a, s, up.asJSON, func(w io.Writer) { hintsInLab(w, s, there.Lab.Name(), there.Layout) })
	})
}

func (up *upCommand) flags(c *cobra.Command) {
	c.Flags().StringVar(&up.stateDir, "state-dir", "", "`DIR` of lab journals (default $SKERRY_STATE, else /run/skerry)")
	c.Flags().StringVar(&up.c.Lab.Name, "name", "", "name of the lab (default: name of the topology)")
	c.Flags().StringVar(&up.c.Lab.Engine, "engine", "auto", "link engine: auto, netem or userspace")
	c.Flags().Float64Var(&up.c.Lab.Scale, "scale", 1, "factor of every latency")
	c.Flags().StringVar(&up.c.Hydra.Zone, "zone", "hydra.test", "DNS name of the wallet")
	c.Flags().StringVar(&up.c.Hydra.Prefer, "prefer", "", "`CLOUD` whose members are preferred as leader")
	c.Flags().BoolVar(&up.c.Hydra.Secure, "secure", false, "use mutual TLS between members and load balancers, and tokens")
	c.Flags().StringVar(&up.keys, "dir", "", "`DIR` of the keys of --secure (default: a temporary one, removed at the end)")
	c.Flags().StringArrayVar(&up.databases, "database", nil,
		"database of a cloud, `CLOUD=URL`, as reachable from its nodes: postgres:// or mysql:// (default: SQLite)")
	c.Flags().DurationVar(&up.c.Restart, "restart", 3*time.Second, "restart a process that ended after this time; 0 disables restarts")
	c.Flags().StringVar(&up.c.Door, "door", "127.0.0.1:0", "`ADDR` of the wallet for browsers on this machine; \"\" for none")
	c.Flags().BoolVar(&up.asJSON, "json", false, "print all addresses as one JSON object")
}

// hintsInLab prints commands for a deployment on a lab.
func hintsInLab(w io.Writer, s shown, name string, layout deploy.Layout) {
	from, member := layout.Clouds[0].Members[0], layout.Clouds[0].Members[0]
	if layout.DNS != nil {
		from = layout.DNS
	}
	if s.Door != "" {
		fmt.Fprintf(w, "\nThe wallet's page is at %s, and in the lab at http://%s:%d.\n", s.Door, s.Zone, deploy.PortLB)
	}
	secure := ""
	if s.Keys != "" {
		secure = secureFlags(s.Keys)
	}
	fmt.Fprintf(w, "  skerry lab exec -l %s %s -- curl -s http://%s:%d/api/sum\n", name, from.Name(), s.Zone, deploy.PortLB)
	fmt.Fprintf(w, "  skerry lab exec -l %s %s -- hydra status %s%s\n", name, from.Name(), deploy.HostPort(member, deploy.PortAPI), secure)
	for _, c := range layout.Clouds {
		fmt.Fprintf(w, "  skerry lab set -l %s '%s-*' down=true      disconnects %s; down=false reconnects it\n", name, c.Name, c.Name)
	}
	fmt.Fprintln(w, "Stop all processes and remove the lab with Ctrl-C.")
}

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
