package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		Short: "Start a whole deployment on a lab",
		Long: "Bring a topology to life and start Hydra on it: every site of three nodes or more is a cloud, whose last node has the\n" +
			"load balancer and the wallet and whose others are members that share an SQLite database; the first node of the first\n" +
			"other site is the witness, and the last one there has the DNS server, which all nodes ask. The wallet's page is at --door\n" +
			"for a browser on this machine. The lab is one like any other: `skerry lab exec` is a client in it, `skerry lab set` cuts a\n" +
			"cloud off. A process that is killed is started again after --restart. Ctrl-C ends all of it, and the lab.",
		Example: `  hydra up topologies/two-clouds.yaml
  hydra up topologies/two-clouds.yaml --scale 0 --name near --secure
  skerry lab exec -l hydra third-2 -- curl -s http://hydra.test:8080/api/accounts
  skerry lab set -l hydra 'aws-*' down=true      the cloud is lost; down=false: it is back`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return up.run(cmd.Context(), a, args[0])
		},
	}
	up.flags(c)
	return c
}

// upCommand is the command's flags.
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
		return fmt.Errorf("finding this program: %w", err)
	}
	if c.Lab.Name == "" {
		c.Lab.Name = lab.SanitizeName(c.Lab.Topology.Name)
	}
	if c.Hydra.Secure {
		var remove func() error
		if c.Hydra.Dir, remove, err = directory(up.keys); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
	}
	// Other commands are to change its links; one without root lives in this command's
	// user namespace, and ends with it.
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
	c.Flags().StringVar(&up.stateDir, "state-dir", "", "keep the journals of labs in `DIR` (default $SKERRY_STATE, else /run/skerry)")
	c.Flags().StringVar(&up.c.Lab.Name, "name", "", "the lab's name (default the topology's)")
	c.Flags().StringVar(&up.c.Lab.Engine, "engine", "auto", "what makes the links: auto, netem or userspace")
	c.Flags().Float64Var(&up.c.Lab.Scale, "scale", 1, "multiply every latency")
	c.Flags().StringVar(&up.c.Hydra.Zone, "zone", "hydra.test", "the name under which the wallet is found")
	c.Flags().StringVar(&up.c.Hydra.Prefer, "prefer", "", "the `CLOUD` whose members should lead")
	c.Flags().BoolVar(&up.c.Hydra.Secure, "secure", false, "mutual TLS between members and with the load balancers, and tokens")
	c.Flags().StringVar(&up.keys, "dir", "", "keep the keys of --secure in `DIR` (default: a temporary one, removed at the end)")
	c.Flags().StringArrayVar(&up.databases, "database", nil, "a cloud's database, `CLOUD=URL`, as its nodes reach it: postgres:// or mysql:// (default: SQLite)")
	c.Flags().DurationVar(&up.c.Restart, "restart", 3*time.Second, "how long a process that ended stays away; 0: for ever")
	c.Flags().StringVar(&up.c.Door, "door", "127.0.0.1:0", "where on this machine a browser finds the wallet, `ADDR`; \"\": nowhere")
	c.Flags().BoolVar(&up.asJSON, "json", false, "print where everything is as one JSON object")
}

// hintsInLab tells what to do with a deployment on a lab.
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
		secure = reachWith(s.Keys)
	}
	fmt.Fprintf(w, "  skerry lab exec -l %s %s -- curl -s http://%s:%d/api/sum\n", name, from.Name(), s.Zone, deploy.PortLB)
	fmt.Fprintf(w, "  skerry lab exec -l %s %s -- hydra status %s%s\n", name, from.Name(), deploy.HostPort(member, deploy.PortAPI), secure)
	for _, c := range layout.Clouds {
		fmt.Fprintf(w, "  skerry lab set -l %s '%s-*' down=true      cuts %s off; down=false: it is back\n", name, c.Name, c.Name)
	}
	fmt.Fprintln(w, "Ctrl-C ends all of it.")
}
