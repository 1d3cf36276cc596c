package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/hydra/deploy"
)

func newHydraDev(a *app) *cobra.Command {
	var o deploy.Options
	var dir string
	var members int
	var restart time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "dev",
		Short: "Start a whole deployment on this machine, without root",
		Long: "Start two clouds with their members, an SQLite database, a load balancer and the wallet each, a witness and the DNS\n" +
			"server, as processes on loopback addresses (127.77.0.0/16 or the next that is free), print where they are, and end\n" +
			"them all on Ctrl-C. Kill any of them: after --restart it is started again. Nothing is left, unless --dir keeps the data.",
		Example: "  skerry hydra dev\n  skerry hydra dev --secure --dir ~/hydra\n  skerry hydra dev --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if members < 1 || members > 50 {
				return fmt.Errorf("%w: --members is from 1 to 50", errUsage)
			}
			if o.Exe, err = executable(); err != nil {
				return err
			}
			if dir == "" {
				if dir, err = os.MkdirTemp("", "skerry-hydra-"); err != nil {
					return fmt.Errorf("making a directory: %w", err)
				}
				defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			}
			if o.Dir, err = filepath.Abs(dir); err != nil {
				return fmt.Errorf("finding the directory: %w", err)
			}
			layout, err := deploy.Loopback(o.Dir, members)
			if err != nil {
				return err
			}
			a.logAtInfo()
			d, err := deploy.Launch(cmd.Context(), layout, o, restart, a.log)
			if err != nil {
				return err
			}
			err = a.showDeployment(d, o.Zone, asJSON)
			if err == nil {
				<-cmd.Context().Done()
			}
			return errors.Join(err, d.Stop(context.WithoutCancel(cmd.Context())))
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "keep data, logs and keys in `DIR` (default: a temporary one, removed at the end)")
	c.Flags().IntVar(&members, "members", 2, "of each cloud")
	c.Flags().StringVar(&o.Zone, "zone", "hydra.test", "the name under which the wallet is found")
	c.Flags().StringVar(&o.Prefer, "prefer", "", "the `CLOUD` whose members should lead: aws or gcp")
	c.Flags().BoolVar(&o.Secure, "secure", false, "mutual TLS between members and with the load balancers, and tokens")
	c.Flags().DurationVar(&restart, "restart", 3*time.Second, "how long a process that ended stays away; 0: for ever")
	c.Flags().BoolVar(&asJSON, "json", false, "print where everything is as one JSON object")
	o.Wallet = true
	return c
}

// shown is a deployment as --json tells of it.
type shown struct {
	Zone     string         `json:"zone"`
	DNS      string         `json:"dns"`
	Services []deploy.State `json:"services"`
}

func (a *app) showDeployment(d *deploy.Deployment, zone string, asJSON bool) error {
	all := d.States()
	s := shown{Zone: zone, Services: all}
	for _, one := range all {
		if one.Kind == deploy.Names {
			s.DNS = fmt.Sprintf("%s:%d", one.Address, deploy.PortDNS)
		}
	}
	if asJSON {
		return printJSON(a, s)
	}
	if err := tabulate(a.out, all); err != nil {
		return err
	}
	var lb, member string
	for _, one := range all {
		switch {
		case one.Kind == deploy.Balancer && lb == "":
			lb = one.URL
		case one.Kind == deploy.Member && member == "":
			member = fmt.Sprintf("%s:%d", one.Address, deploy.PortAPI)
		}
	}
	_, err := fmt.Fprintf(a.out, "\nThe wallet is at %s, and under the name %s for who asks the DNS server at %s.\n"+
		"  skerry hydra status %s\nCtrl-C ends all of it.\n", lb, zone, s.DNS, member)
	return err
}

func tabulate(w io.Writer, all []deploy.State) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERVICE\tKIND\tCLOUD\tNODE\tWHERE\tPID")
	for _, s := range all {
		where := s.URL
		if s.Kind == deploy.Names {
			where = fmt.Sprintf("dns://%s:%d", s.Address, deploy.PortDNS)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\n", s.Name, s.Kind, s.Cloud, s.Node, where, s.PID)
	}
	return t.Flush()
}
