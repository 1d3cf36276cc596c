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

// shown is a deployment as --json tells of it.
type shown struct {
	Zone string `json:"zone"`
	DNS  string `json:"dns"` // HOST:PORT
	// Door is where this machine's browser finds the wallet of a lab.
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

// showDeployment prints where everything is, and then the hints of what to do with it.
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

// reachWith are the flags that reach a secured cluster.
func reachWith(keys string) string {
	in := func(file string) string { return filepath.Join(keys, file) }
	return fmt.Sprintf(" --ca %s --cert %s --key %s --token-file %s", in("ca.crt"), in("application.crt"), in("application.key"), in("token-admin"))
}

// databasesOf reads --database CLOUD=URL.
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
