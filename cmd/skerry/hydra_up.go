package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/hydra/deploy"
	"skerry/internal/lab"
	"skerry/internal/rootless"
	"skerry/internal/topology"
)

// dnsPort is where resolvers ask.
const dnsPort = 53

func newHydraUp(a *app) *cobra.Command {
	var o deploy.Options
	var config lab.Config
	var keys, door string
	var databases []string
	var restart time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "up TOPOLOGY",
		Short: "Start a whole deployment on a lab",
		Long: "Bring a topology to life and start Hydra on it: every site of three nodes or more is a cloud, whose last node has the\n" +
			"load balancer and the wallet and whose others are members that share an SQLite database; the first node of the first\n" +
			"other site is the witness, and the last one there has the DNS server, which all nodes ask. The wallet's page is at --door\n" +
			"for a browser on this machine. The lab is one like any other: `skerry lab exec` is a client in it, `skerry lab set` cuts a\n" +
			"cloud off. A process that is killed is started again after --restart. Ctrl-C ends all of it, and the lab.",
		Example: `  skerry hydra up topologies/two-clouds.yaml
  skerry hydra up topologies/two-clouds.yaml --scale 0 --name near --secure
  skerry lab exec -l hydra third-2 -- curl -s http://hydra.test:8080/api/accounts
  skerry lab set -l hydra 'aws-*' down=true      the cloud is lost; down=false: it is back`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			cloud, err := topology.Load(args[0])
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			if o.Databases, err = databasesOf(databases); err != nil {
				return err
			}
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			if config.Exe, err = executable(); err != nil {
				return err
			}
			if config.Name == "" {
				config.Name = lab.NameOf(cloud.Name)
			}
			if o.Secure {
				var remove func() error
				if o.Dir, remove, err = directory(keys); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, remove()) }()
			}
			// Other commands are to change its links; one without root lives in this command's
			// user namespace, and ends with it.
			config.Ephemeral = rootless.Inside()
			config.Topology, config.StateDir, config.Log = cloud, a.stateDir, a.log
			l, err := lab.Up(cmd.Context(), config)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, down(cmd.Context(), l)) }()
			if config.Scale == 0 && cmd.Flags().Changed("scale") {
				if err := l.Scale(cmd.Context(), 0); err != nil {
					return err
				}
			}
			layout, err := deploy.OnLab(l)
			if err != nil {
				return err
			}
			o.Exe, o.Insecure, o.Wallet, o.DNSPort = config.Exe, true, true, dnsPort
			if err := resolveBy(l, layout); err != nil {
				return err
			}
			a.logAtInfo()
			d, err := deploy.Launch(cmd.Context(), layout, o, restart, a.log)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Stop(context.WithoutCancel(cmd.Context()))) }()
			s := describe(d, o)
			if layout.Names != nil && door != "" {
				opened, err := deploy.OpenDoor(cmd.Context(), door, layout.Names, s.DNS, o.Zone, deploy.PortLB)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, opened.Close()) }()
				s.Door = opened.URL()
			}
			if err := a.showDeployment(s, asJSON, func(w io.Writer) { hintsInLab(w, s, l.Name(), layout) }); err != nil {
				return err
			}
			return a.whileUp(cmd.Context(), l.Name(), l.Hosts()[0].Name())
		},
	}
	c.Flags().StringVar(&config.Name, "name", "", "the lab's name (default the topology's)")
	c.Flags().StringVar(&config.Engine, "engine", "auto", "what makes the links: auto, netem or userspace")
	c.Flags().Float64Var(&config.Scale, "scale", 1, "multiply every latency")
	c.Flags().StringVar(&o.Zone, "zone", "hydra.test", "the name under which the wallet is found")
	c.Flags().StringVar(&o.Prefer, "prefer", "", "the `CLOUD` whose members should lead")
	c.Flags().BoolVar(&o.Secure, "secure", false, "mutual TLS between members and with the load balancers, and tokens")
	c.Flags().StringVar(&keys, "dir", "", "keep the keys of --secure in `DIR` (default: a temporary one, removed at the end)")
	c.Flags().StringArrayVar(&databases, "database", nil, "a cloud's database, `CLOUD=URL`, as its nodes reach it: postgres:// or mysql:// (default: SQLite)")
	c.Flags().DurationVar(&restart, "restart", 3*time.Second, "how long a process that ended stays away; 0: for ever")
	c.Flags().StringVar(&door, "door", "127.0.0.1:0", "where on this machine a browser finds the wallet, `ADDR`; \"\": nowhere")
	c.Flags().BoolVar(&asJSON, "json", false, "print where everything is as one JSON object")
	return c
}

// glance is how often a lab is looked for that another command may end.
const glance = 500 * time.Millisecond

// whileUp waits until it is told to end, or the lab was ended by another command.
func (a *app) whileUp(ctx context.Context, name, node string) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(glance):
		}
		if _, err := lab.OpenNode(a.stateDir, name, node); errors.Is(err, lab.ErrNotFound) {
			a.log.Info("the lab was ended by another command", "lab", name)
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
func resolveBy(l *lab.Lab, layout deploy.Layout) error {
	if layout.Names == nil {
		return nil
	}
	at, err := netip.ParseAddr(layout.Names.Addr())
	if err != nil {
		return fmt.Errorf("where the DNS server is: %w", err)
	}
	return l.Resolve(at)
}

// hintsInLab tells what to do with a deployment on a lab.
func hintsInLab(w io.Writer, s shown, name string, layout deploy.Layout) {
	from, member := layout.Clouds[0].Members[0], layout.Clouds[0].Members[0]
	if layout.Names != nil {
		from = layout.Names
	}
	if s.Door != "" {
		fmt.Fprintf(w, "\nThe wallet's page is at %s, and in the lab at http://%s:%d.\n", s.Door, s.Zone, deploy.PortLB)
	}
	secure := ""
	if s.Keys != "" {
		secure = reachWith(s.Keys)
	}
	fmt.Fprintf(w, "  skerry lab exec -l %s %s -- curl -s http://%s:%d/api/sum\n", name, from.Name(), s.Zone, deploy.PortLB)
	fmt.Fprintf(w, "  skerry lab exec -l %s %s -- skerry hydra status %s%s\n", name, from.Name(), deploy.Join(member, deploy.PortAPI), secure)
	for _, c := range layout.Clouds {
		fmt.Fprintf(w, "  skerry lab set -l %s '%s-*' down=true      cuts %s off; down=false: it is back\n", name, c.Name, c.Name)
	}
	fmt.Fprintln(w, "Ctrl-C ends all of it.")
}

// directory is an empty temporary directory where none is named, and what removes it.
func directory(named string) (string, func() error, error) {
	keep := func() error { return nil }
	if named != "" {
		dir, err := filepath.Abs(named)
		if err != nil {
			return "", keep, fmt.Errorf("finding the directory: %w", err)
		}
		return dir, keep, nil
	}
	dir, err := os.MkdirTemp("", "skerry-hydra-")
	if err != nil {
		return "", keep, fmt.Errorf("making a directory: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}
