package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"skerry/cmd/internal/cli"
	"skerry/systems/hydra/deploy"
)

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
