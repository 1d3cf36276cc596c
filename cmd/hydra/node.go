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
		Short: "Run a member of the data layer: the log, its cloud's database and the HTTP interface",
		Long: "Run a member of the data layer until SIGTERM. A file (--config) and flags say the same things; flags win. A line\n" +
			"of JSON on stdout tells when and where it serves, structured logs go to stderr. See docs/hydra.md.",
		Example: `  hydra node --cluster shop --name a1 --cloud a --data /var/lib/hydra/a1
  hydra node --config a1.yaml
  hydra node --cluster shop --name w --cloud c --witness --data w --listen 127.0.0.1:7090 --peer 127.0.0.1:7091 \
    --member a1=a,127.0.0.1:7071,127.0.0.1:7070 --member b1=b,127.0.0.1:7081,127.0.0.1:7080 --member w=c,127.0.0.1:7091,witness
  hydra node --direct --cluster shop --name sql --cloud a --data sql --database postgres://hydra:secret@127.0.0.1/shop`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&file, "config", "", "read the member from a YAML `FILE`")
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

// nodeLists are what flags add to the lists of a member's file.
type nodeLists struct{ members, hosts []string }

// memberOf is a member's configuration as a file, where there is one, and flags say it.
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

// bindNode lets flags set a member's configuration, which has its defaults; what those are
// given that add to it is returned.
func bindNode(f *pflag.FlagSet, c *hydra.Config) *nodeLists {
	lists := new(nodeLists)
	f.StringVar(&c.Cluster, "cluster", c.Cluster, "`NAME` of the cluster")
	f.Uint64Var(&c.ID, "id", c.ID, "identifier, never used again after a removal (default: made of the name)")
	f.StringVar(&c.Name, "name", c.Name, "`NAME` of this member")
	f.StringVar(&c.Cloud, "cloud", c.Cloud, "`NAME` of the cloud it stands in")
	f.StringVar(&c.Listen, "listen", c.Listen, "`ADDRESS` of the HTTP interface")
	f.StringVar(&c.Peer, "peer", c.Peer, "`ADDRESS` for other members")
	f.StringVar(&c.Advertise, "advertise", c.Advertise, "`ADDRESS` that others reach the HTTP interface at (default: --listen)")
	f.StringVar(&c.Data, "data", c.Data, "`DIR` of the log")
	f.StringVar(&c.Database, "database", c.Database, "the cloud's database: `sqlite:PATH`, postgres://... or mysql://... (default: SQLite in --data)")
	f.TextVar(&c.DatabaseTimeout, "database-timeout", c.DatabaseTimeout, "how long a database's server may say nothing while it is asked, before it is taken for away")
	f.BoolVar(&c.Witness, "witness", c.Witness, "vote and keep the log, without a database")
	f.BoolVar(&c.Join, "join", c.Join, "wait to be added to a running cluster")
	f.BoolVar(&c.Direct, "direct", c.Direct, "serve the database by itself, past the log")
	f.StringVar(&c.Certificate, "cert", c.Certificate, "certificate `FILE`, for mutual TLS")
	f.StringVar(&c.Key, "key", c.Key, "its key `FILE`")
	f.StringVar(&c.Authority, "ca", c.Authority, "`FILE` of the authority's certificate")
	f.StringVar(&c.Tokens, "tokens", c.Tokens, "`FILE` of bearer tokens; auto: one of your own, which is made where it is missing and found by skerry's commands")
	f.BoolVar(&c.Insecure, "insecure", c.Insecure, "allow addresses beyond this machine without TLS and tokens, in a laboratory")
	f.TextVar(&c.Election, "election", c.Election, "election timeout (default: from measured round trips)")
	f.StringVar(&c.PreferCloud, "prefer-cloud", c.PreferCloud, "`CLOUD` where the leader should stand")
	f.BoolVar(&c.FollowWrites, "follow-writes", c.FollowWrites, "move the leader to the cloud that writes most")
	f.TextVar(&c.MaxLog, "max-log", c.MaxLog, "bound on the log on disk")
	f.TextVar(&c.MaxAge, "max-age", c.MaxAge, "how long the log waits for a database that does not apply it (0: for ever)")
	f.Int64Var(&c.InFlight, "in-flight", c.InFlight, "requests that are served at a time; more are answered with 503")
	f.TextVar(&c.Timeout, "timeout", c.Timeout, "bound on an operation")
	f.TextVar(&c.Drain, "drain", c.Drain, "how long balancers are told to look elsewhere before it ends")
	f.StringArrayVar(&lists.members, "member", nil, "a member of a new cluster: `[ID:]NAME=CLOUD,PEER[,API][,witness]` (repeatable)")
	f.StringArrayVar(&lists.hosts, "host", nil, "a further `NAME` that the HTTP interface answers to (repeatable)")
	return lists
}

// underFlags reads a member's file and sets in it what flags say otherwise.
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
