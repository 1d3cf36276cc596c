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
	"skerry/systems/hydra/deploy"
)

func newDev(a *cli.App) *cobra.Command {
	var o deploy.Options
	var dir string
	var members int
	var databases []string
	var restart time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "dev",
		Short: "Start a whole deployment on this machine, without root",
		Long: "Start two clouds with their members, an SQLite database, a load balancer and the wallet each, a witness and the DNS\n" +
			"server, as processes on loopback addresses (127.77.0.0/16 or the next that is free), print where they are, and end\n" +
			"them all on Ctrl-C. Kill any of them: after --restart it is started again. Nothing is left, unless --dir keeps the data.",
		Example: "  hydra dev\n  hydra dev --secure --dir ~/hydra\n  hydra dev --database aws=postgres://me:secret@127.0.0.1/hydra\n  hydra dev --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if members < 1 || members > 50 {
				return fmt.Errorf("%w: --members is from 1 to 50", cli.ErrUsage)
			}
			if o.Databases, err = databasesOf(databases); err != nil {
				return err
			}
			if o.Exe, err = os.Executable(); err != nil {
				return err
			}
			var remove func() error
			if o.Dir, remove, err = directory(dir); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, remove()) }()
			layout, err := deploy.LayoutOnLoopback(o.Dir, members)
			if err != nil {
				return err
			}
			a.LogAtInfo()
			d, err := deploy.Launch(cmd.Context(), layout, o, restart, a.Log)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Stop(context.WithoutCancel(cmd.Context()))) }()
			s := describe(d, o)
			if err := showDeployment(a, s, asJSON, func(w io.Writer) { hintsOnLoopback(w, s) }); err != nil {
				return err
			}
			<-cmd.Context().Done()
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "keep data, logs and keys in `DIR` (default: a temporary one, removed at the end)")
	c.Flags().IntVar(&members, "members", 2, "of each cloud")
	c.Flags().StringVar(&o.Zone, "zone", "hydra.test", "the name under which the wallet is found")
	c.Flags().StringVar(&o.Prefer, "prefer", "", "the `CLOUD` whose members should lead: aws or gcp")
	c.Flags().BoolVar(&o.Secure, "secure", false, "mutual TLS between members and with the load balancers, and tokens")
	c.Flags().StringArrayVar(&databases, "database", nil, "a cloud's database, `CLOUD=URL`: postgres:// or mysql:// (default: SQLite)")
	c.Flags().DurationVar(&restart, "restart", 3*time.Second, "how long a process that ended stays away; 0: for ever")
	c.Flags().BoolVar(&asJSON, "json", false, "print where everything is as one JSON object")
	o.Wallet = true
	return c
}

// hintsOnLoopback tells what to do with a deployment on this machine.
func hintsOnLoopback(w io.Writer, s shown) {
	var lb, member string
	for _, one := range s.Services {
		switch {
		case one.Kind == deploy.Balancer && lb == "":
			lb = one.URL
		case one.Kind == deploy.Member && member == "":
			member = fmt.Sprintf("%s:%d", one.Address, deploy.PortAPI)
		}
	}
	secure := ""
	if s.Keys != "" {
		secure = reachWith(s.Keys)
	}
	fmt.Fprintf(w, "\nThe wallet is at %s, and under the name %s for who asks the DNS server at %s.\n"+
		"  hydra status %s%s\nCtrl-C ends all of it.\n", lb, s.Zone, s.DNS, member, secure)
}
