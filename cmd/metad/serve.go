package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/base/bodylimit"
	"skerry/systems/metadata/instance"
	"skerry/systems/metadata/protocol"
	"skerry/systems/metadata/rebalance"
)

func newServe(a *cli.App) *cobra.Command {
	var s serveCommand
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a directory tree",
		Long: "Serve a directory tree until interrupted. Acknowledged changes are on disk: a killed server continues where it was\n" +
			"when it is restarted on the same directory.\n" +
			"\n" +
			"With --member, the server is one of several replicas. Acknowledged changes are on the disks of a majority, any\n" +
			"replica answers, and the loss of a minority loses nothing.\n" +
			"\n" +
			"With --server, the server shares a tree with other servers. Each is a single server or a group of replicas.\n" +
			"Any of them answers for the whole tree. With --balance, an overloaded server moves directories to other servers,\n" +
			"according to their operations per second, while it serves.\n" +
			"\n" +
			"An address beyond this machine requires --tokens, or --insecure to give all rights to every client. Use --tls with\n" +
			"tokens, unless the network is private.",
		Example: "  metad serve --listen 127.0.0.1:8080 --data /var/lib/metadata\n" +
			"  curl -d 'mkdir -p /a/b' http://127.0.0.1:8080/\n" +
			"  metad serve --listen 127.0.0.1:8081 --data m1 --name m1 \\\n" +
			"    --member m1=127.0.0.1:9081 --member m2=127.0.0.1:9082 --member m3=127.0.0.1:9083\n" +
			"  metad serve --listen 127.0.0.1:8080 --data g1 --cluster g1 --root g1 \\\n" +
			"    --server g1=127.0.0.1:8080 --server g2=127.0.0.1:8090",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), a) },
	}
	s.flags(c)
	return c
}

// serveCommand holds the flags of the command.
type serveCommand struct {
	o        instance.Options
	group    instance.ReplicaGroup
	share    instance.Share
	policy   rebalance.Policy
	balances bool
	addrFile string
}

func (s *serveCommand) run(ctx context.Context, a *cli.App) error {
	s.o.Log = a.Log
	if len(s.group.Members) > 0 {
		s.o.Group = &s.group
	}
	if len(s.share.Servers) > 0 || s.share.File != "" {
		s.share.Name = s.group.Cluster
		s.o.Share = &s.share
	}
	if (s.o.Share == nil) != (s.share.Root == "") {
		return advice.With(fmt.Errorf("%w: servers and --root require each other", instance.ErrShare),
			"give --root NAME, and --server NAME=ADDR for each server or --servers FILE")
	}
	if s.balances && s.o.Share == nil {
		return advice.With(fmt.Errorf("%w: --balance requires other servers", instance.ErrShare),
			"name the servers with --server NAME=ADDR for each, and --root NAME")
	}
	if s.balances {
		s.share.Balance = &s.policy
	}
	s.o.Ready = func(addr net.Addr, r protocol.LogRecovery) error {
		if s.addrFile != "" {
			if err := instance.WriteAddr(s.addrFile, addr); err != nil {
				return err
			}
		}
		scheme := "http"
		if s.o.Security.TLS {
			scheme = "https"
		}
		_, err := fmt.Fprintf(a.Out, "serving %s on %s://%s/ (%d records, read in %s)\n",
			s.o.Dir, scheme, addr, r.Snapshot+r.Records, r.Took.Round(time.Millisecond))
		return err
	}
	return instance.Run(ctx, s.o)
}

func (s *serveCommand) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.o.Listen, "listen", "127.0.0.1:8080", "listen on `ADDR`")
	cli.HostFlag(c, &s.o.Server.Hosts)
	f.StringVar(&s.addrFile, "addr-file", "", "write the address to `FILE` once the server is ready, for scripts")
	f.StringVar(&s.o.Dir, "data", "metadata-data", "`DIR` of the tree, created if missing")
	f.Int64Var(&s.o.Journal.SegmentBytes, "segment-bytes", 64<<20, "size of a file of the log")
	f.Int64Var(&s.o.Journal.SnapshotBytes, "snapshot-bytes", 128<<20,
		"size of the log between two snapshots, at least the size of the last snapshot")
	f.StringArrayVar(&s.group.Members, "member", nil,
		"replica with its peer address, `NAME=ADDR` (repeatable; the same list at each replica, which includes itself)")
	f.BoolVar(&s.group.Join, "join", false,
		"wait for metad member add to add this replica to a running group; --member names only this replica")
	f.StringVar(&s.group.Name, "name", "", "`NAME` of this replica")
	f.StringVar(&s.group.Cluster, "cluster", "metadata", "`NAME` of the server, which is the name of its group of replicas")
	f.StringArrayVar(&s.share.Servers, "server", nil,
		"server that shares the tree, `NAME=ADDR[,ADDR...]` with an address for each replica (repeatable; the same list at each server)")
	f.StringVar(&s.share.File, "servers", "",
		"`FILE` with a line NAME=ADDR[,ADDR...] for each server, instead of --server; reloaded when it changes")
	f.StringVar(&s.share.Root, "root", "", "`NAME` of the server with the root")
	f.BoolVar(&s.balances, "balance", false, "move hot directories to servers with less load")
	def := rebalance.Policy{}.WithDefaults()
	f.DurationVar(&s.policy.Interval, "balance-interval", def.Interval, "interval between checks of the load")
	f.Float64Var(&s.policy.Factor, "balance-factor", def.Factor, "move directories above this multiple of the mean operations/s of servers")
	f.Float64Var(&s.policy.Floor, "balance-floor", def.Floor, "and above this minimum of `OPS` per second")
	f.IntVar(&s.policy.Rounds, "balance-rounds", def.Rounds, "and both in this number of consecutive intervals")
	f.Float64Var(&s.policy.Margin, "balance-margin", def.Margin,
		"keep the other server, after a move, below the load of this server by this fraction of its operations/s")
	f.DurationVar(&s.policy.Rest, "balance-rest", def.Rest, "pause after a move")
	f.DurationVar(&s.policy.Stay, "balance-stay", def.Stay, "minimum time that a moved directory stays")
	f.IntVar(&s.policy.Entries, "balance-entries", def.Entries, "maximum number of entries of a directory that is moved")
	f.StringVar(&s.o.Security.Certificate, "cert", "", "certificate `FILE`, for mutual TLS between replicas (hydra init makes them)")
	f.StringVar(&s.o.Security.Key, "key", "", "key `FILE` of the certificate")
	f.StringVar(&s.o.Security.Authority, "ca", "", "certificate `FILE` of the authority")
	f.BoolVar(&s.o.Security.TLS, "tls", false, "serve HTTPS with the certificate")
	f.StringVar(&s.o.Security.Tokens, "tokens", "",
		"`FILE` of bearer tokens; auto creates a token of this user that the commands of Skerry find")
	f.BoolVar(&s.o.Security.Insecure, "insecure", false,
		"allow addresses beyond this machine without tokens, and replicas without certificates")
	f.Int64Var(&s.o.Server.MaxBody, "max-body", 8<<20, "maximum size of a request body in bytes")
	f.Int64Var(&s.o.Server.MaxBodies, "max-bodies", bodylimit.DefaultBudget, "maximum size of all request bodies together in bytes")
	f.IntVar(&s.o.Server.MaxConnections, "max-connections", 4096, "maximum number of open connections")
	f.DurationVar(&s.o.Server.Idle, "idle", 2*time.Minute, "close connections without a request after this time")
	f.DurationVar(&s.o.Server.Patience, "patience", 30*time.Second, "timeout of reading a request and of writing an answer")
	c.MarkFlagsRequiredTogether("member", "name")
	c.MarkFlagsMutuallyExclusive("server", "servers")
	c.MarkFlagsRequiredTogether("cert", "key", "ca")
}
