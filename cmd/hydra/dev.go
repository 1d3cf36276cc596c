package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
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
		Short: "Start a complete deployment on this machine, without root",
		Long: "Start a complete deployment as processes on loopback addresses (127.77.0.0/16, or the next free network): two clouds,\n" +
			"each with members, an SQLite database, a load balancer and the wallet, and a witness and the DNS server. Print the\n" +
			"addresses, and stop all processes on Ctrl-C. A process that is killed restarts after --restart. All data is removed\n" +
			"at the end, unless --dir is given.",
		Example: `  hydra dev
  hydra dev --secure --dir ~/hydra
  hydra dev --database aws=postgres://me:secret@127.0.0.1/hydra
  hydra dev --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if members < 1 || members > 50 {
				return fmt.Errorf("%w: --members must be 1 to 50", cli.ErrUsage)
			}
			if o.Databases, err = databasesOf(databases); err != nil {
				return err
			}
			if o.Exe, err = os.Executable(); err != nil {
				return err
			}
			var remove func() error
			if o.Dir, remove, err = openDirectory(dir); err != nil {
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
	c.Flags().StringVar(&dir, "dir", "", "`DIR` of data, logs and keys (default: a temporary one, removed at the end)")
	c.Flags().IntVar(&members, "members", 2, "members of each cloud")
	c.Flags().StringVar(&o.Zone, "zone", "hydra.test", "DNS name of the wallet")
	c.Flags().StringVar(&o.Prefer, "prefer", "", "`CLOUD` whose members are preferred as leader: aws or gcp")
	c.Flags().BoolVar(&o.Secure, "secure", false, "use mutual TLS between members and load balancers, and tokens")
	c.Flags().StringArrayVar(&databases, "database", nil, "database of a cloud, `CLOUD=URL`: postgres:// or mysql:// (default: SQLite)")
	c.Flags().DurationVar(&restart, "restart", 3*time.Second, "restart a process that ended after this time; 0 disables restarts")
	c.Flags().BoolVar(&asJSON, "json", false, "print all addresses as one JSON object")
	o.Wallet = true
	return c
}

// hintsOnLoopback prints commands for a deployment on this machine.
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
		secure = secureFlags(s.Keys)
	}
	fmt.Fprintf(w, "\nThe wallet is at %s, and at the name %s through the DNS server %s.\n"+
		"  hydra status %s%s\nStop all processes with Ctrl-C.\n", lb, s.Zone, s.DNS, member, secure)
}

// shown is the output of --json for a deployment.
type shown struct {
	Zone string `json:"zone"`
	DNS  string `json:"dns"` // HOST:PORT
	// Door is the URL of the wallet of a lab for browsers on this machine.
	Door string `json:"door,omitempty"`
	// Keys is the directory of certificates, keys and tokens.
	Keys     string         `json:"keys,omitempty"`
	Services []deploy.State `json:"services"`
}

func describe(d *deploy.Deployment, o deploy.Options) shown {
	s := shown{Zone: o.Zone, DNS: d.DNS(), Services: d.States()}
	if o.Secure {
		s.Keys = filepath.Join(o.Dir, "pki")
	}
	return s
}

// showDeployment prints the addresses of a deployment, and then hints.
func showDeployment(a *cli.App, s shown, asJSON bool, hints func(io.Writer)) error {
	if asJSON {
		return a.PrintJSON(s)
	}
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERVICE\tKIND\tCLOUD\tNODE\tWHERE\tPID")
	for _, one := range s.Services {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\n", one.Name, one.Kind, one.Cloud, one.Node, one.URL, one.PID)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	hints(a.Out)
	return nil
}

// secureFlags returns the flags of commands for a secured cluster.
func secureFlags(keys string) string {
	in := func(file string) string { return filepath.Join(keys, file) }
	return fmt.Sprintf(" --ca %s --cert %s --key %s --token-file %s",
		in("ca.crt"), in("application.crt"), in("application.key"), in("token-admin"))
}

// databasesOf parses --database CLOUD=URL.
func databasesOf(flags []string) (map[string]string, error) {
	all := map[string]string{}
	for _, f := range flags {
		cloud, url, ok := strings.Cut(f, "=")
		if !ok || cloud == "" || !strings.Contains(url, ":") {
			return nil, fmt.Errorf("%w: --database %q is not CLOUD=URL", cli.ErrUsage, f)
		}
		all[cloud] = url
	}
	return all, nil
}

// openDirectory returns the named directory, or a new temporary one. The function removes a temporary directory.
func openDirectory(named string) (string, func() error, error) {
	keep := func() error { return nil }
	if named != "" {
		dir, err := filepath.Abs(named)
		if err != nil {
			return "", keep, fmt.Errorf("resolve directory: %w", err)
		}
		return dir, keep, nil
	}
	dir, err := os.MkdirTemp("", "skerry-hydra-")
	if err != nil {
		return "", keep, fmt.Errorf("create directory: %w", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}
