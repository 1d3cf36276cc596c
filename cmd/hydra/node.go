package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skerry/cmd/internal/cli"
	"skerry/systems/hydra"
)

func newNode(a *cli.App) *cobra.Command {
	var file string
	c := hydra.Defaults()
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Run a member of the data layer",
		Long: "Run a member of the data layer, with the log, the database of its cloud and the HTTP API, until SIGTERM. The file of\n" +
			"--config has all settings; flags take precedence. A line of JSON on stdout has the address once the member serves.\n" +
			"Structured logs go to stderr. See docs/hydra.md.",
		Example: `  hydra node --cluster shop --name a1 --cloud a --data /var/lib/hydra/a1
  hydra node --config a1.yaml
  hydra node --cluster shop --name w --cloud c --witness --data w --listen 127.0.0.1:7090 --peer 127.0.0.1:7091 \
    --member a1=a,127.0.0.1:7071,127.0.0.1:7070 --member b1=b,127.0.0.1:7081,127.0.0.1:7080 --member w=c,127.0.0.1:7091,witness
  hydra node --direct --cluster shop --name sql --cloud a --data sql --database postgres://hydra:secret@127.0.0.1/shop`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&file, "config", "", "read the configuration of the member from a YAML `FILE`")
	lists := bindNode(cmd.Flags(), &c)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := memberOf(cmd, file, c, lists)
		if err != nil {
			return fmt.Errorf("%w: %w", cli.ErrUsage, err)
		}
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(hydra.GCPercent)
		}
		a.LogAtInfo()
		service, err := hydra.Open(cmd.Context(), c, version, a.Log)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(a.Out).Encode(map[string]any{"member": c.Name, "serving": service.Addr()}); err != nil {
			return errors.Join(err, service.Close(cmd.Context()))
		}
		return service.Run(cmd.Context())
	}
	return cmd
}

// nodeLists are the values of repeatable flags, which extend the lists in a member's file.
type nodeLists struct{ members, hosts []string }

// memberOf returns the configuration of a member from its file, if any, and flags.
func memberOf(cmd *cobra.Command, file string, c hydra.Config, lists *nodeLists) (_ hydra.Config, err error) {
	if file != "" {
		if c, err = underFlags(file, cmd.Flags()); err != nil {
			return c, err
		}
	}
	c.Hosts = append(c.Hosts, lists.hosts...)
	for _, text := range lists.members {
		m, err := hydra.ParseMember(text)
		if err != nil {
			return c, err
		}
		c.Members = append(c.Members, m)
	}
	return c, c.Complete()
}

// bindNode binds flags to the configuration of a member, whose values are the defaults. It returns the values of
// repeatable flags.
func bindNode(f *pflag.FlagSet, c *hydra.Config) *nodeLists {
	lists := new(nodeLists)
	f.StringVar(&c.Cluster, "cluster", c.Cluster, "`NAME` of the cluster")
	f.StringVar(&c.Name, "name", c.Name, "`NAME` of this member")
	f.StringVar(&c.Cloud, "cloud", c.Cloud, "`NAME` of the cloud of this member")
	f.StringVar(&c.Listen, "listen", c.Listen, "`ADDRESS` of the HTTP API")
	f.StringVar(&c.Peer, "peer", c.Peer, "`ADDRESS` for other members")
	f.StringVar(&c.Advertise, "advertise", c.Advertise, "`ADDRESS` of the HTTP API for others (default: --listen)")
	f.StringVar(&c.Data, "data", c.Data, "`DIR` of the log")
	f.StringVar(&c.Database, "database", c.Database,
		"database of the cloud: `sqlite:PATH`, postgres://... or mysql://... (default: SQLite in --data)")
	f.BoolVar(&c.Witness, "witness", c.Witness, "vote and keep the log, without a database")
	f.BoolVar(&c.Join, "join", c.Join, "wait to be added to a running cluster")
	f.BoolVar(&c.Direct, "direct", c.Direct, "serve the database directly, without the log")
	f.StringVar(&c.Certificate, "cert", c.Certificate, "certificate `FILE`, for mutual TLS")
	f.StringVar(&c.Key, "key", c.Key, "key `FILE` of the certificate")
	f.StringVar(&c.Authority, "ca", c.Authority, "certificate `FILE` of the authority")
	f.StringVar(&c.Tokens, "tokens", c.Tokens, "`FILE` of bearer tokens; auto creates a token of this user that the commands of Skerry find")
	f.BoolVar(&c.Insecure, "insecure", c.Insecure, "allow addresses beyond this machine without TLS and tokens, in a laboratory")
	f.TextVar(&c.Election, "election", c.Election, "election timeout (default: from measured round trips)")
	f.TextVar(&c.Timeout, "timeout", c.Timeout, "timeout of an operation")
	f.TextVar(&c.Drain, "drain", c.Drain, "time in which balancers move away before the member stops")
	f.StringArrayVar(&lists.members, "member", nil, "member of a new cluster: `[ID:]NAME=CLOUD,PEER[,API][,witness]` (repeatable)")
	f.StringArrayVar(&lists.hosts, "host", nil, "additional host `NAME` that the HTTP API accepts (repeatable)")
	return lists
}

// underFlags reads a member's file and overrides it by flags.
func underFlags(file string, flags *pflag.FlagSet) (hydra.Config, error) {
	c, err := hydra.LoadConfig(file)
	if err != nil {
		return c, err
	}
	over := pflag.NewFlagSet("", pflag.ContinueOnError)
	bindNode(over, &c)
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != "member" && f.Name != "host" && over.Lookup(f.Name) != nil && err == nil {
			err = over.Set(f.Name, f.Value.String())
		}
	})
	return c, err
}
