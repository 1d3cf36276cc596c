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
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/instance"
	"skerry/systems/metadata/rebalance"
)

func newServe(a *cli.App) *cobra.Command {
	var s serveCommand
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a directory tree",
		Long: "Serve a directory tree until interrupted. What is acknowledged is on disk: the server can be killed at any\n" +
			"moment, and goes on where it was when it is started on the same directory again.\n\n" +
			"With --member, it is one of several replicas: what is acknowledged is on the disks of a majority, any replica\n" +
			"answers, and losing a minority loses nothing.\n\n" +
			"With --server, it is one of several servers that have a tree together, each of them alone or a group of replicas:\n" +
			"any of them answers for the whole tree. With --balance, a server that has more to do than the others gives them\n" +
			"directories, by their operations per second, while it serves.\n\n" +
			"An address that other machines reach needs --tokens, or --insecure: whoever reaches the server may do everything\n" +
			"otherwise. Give --tls with them, unless nobody else sees the packets.",
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

// serveCommand is the command's flags.
type serveCommand struct {
	o        instance.Options
	group    instance.Group
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
		return advice.With(fmt.Errorf("%w: the servers and the one that has the root go together", instance.ErrShare), "give --root NAME, and --server NAME=ADDR for each or --servers FILE")
	}
	if s.balances && s.o.Share == nil {
		return advice.With(fmt.Errorf("%w: there is none to give anything to", instance.ErrShare), "name the servers: --server NAME=ADDR for each, --root NAME")
	}
	if s.balances {
		s.share.Balance = &s.policy
	}
	s.o.Ready = func(addr net.Addr, r changelog.Recovery) error {
		if s.addrFile != "" {
			if err := instance.WriteAddr(s.addrFile, addr); err != nil {
				return err
			}
		}
		scheme := "http"
		if s.o.Security.TLS {
			scheme = "https"
		}
		_, err := fmt.Fprintf(a.Out, "serving %s on %s://%s/ (%d records, read in %s)\n", s.o.Dir, scheme, addr, r.Snapshot+r.Records, r.Took.Round(time.Millisecond))
		return err
	}
	return instance.Run(ctx, s.o)
}

func (s *serveCommand) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.o.Listen, "listen", "127.0.0.1:8080", "answer on `ADDR`")
	cli.HostFlag(c, &s.o.Server.Hosts)
	f.StringVar(&s.addrFile, "addr-file", "", "write the address to `FILE` once the server answers, for scripts")
	f.StringVar(&s.o.Dir, "data", "metadata-data", "keep the tree in `DIR`, which is made where it is missing")
	f.Int64Var(&s.o.Journal.SegmentBytes, "segment-bytes", 64<<20, "of log in a file")
	f.Int64Var(&s.o.Journal.SnapshotBytes, "snapshot-bytes", 128<<20, "of log between two snapshots, or as much as the last snapshot has")
	f.StringArrayVar(&s.group.Members, "member", nil, "a replica, `NAME=ADDR`: where the others reach it (repeatable; the same at each, this one among them)")
	f.BoolVar(&s.group.Join, "join", false, "wait to be taken into a running group (metad member add); --member is this replica alone")
	f.StringVar(&s.group.Name, "name", "", "`NAME` of this replica")
	f.StringVar(&s.group.Cluster, "cluster", "metadata", "`NAME` of the server, which is that of its group of replicas")
	f.StringArrayVar(&s.share.Servers, "server", nil, "a server that shares the tree, `NAME=ADDR[,ADDR...]`, an address for each replica (repeatable; the same at each)")
	f.StringVar(&s.share.File, "servers", "", "`FILE` with NAME=ADDR[,ADDR...] of each server, a line each, in place of --server; read again when it changes")
	f.StringVar(&s.share.Root, "root", "", "`NAME` of the server that has the root")
	f.BoolVar(&s.balances, "balance", false, "give hot directories to servers that have less to do")
	def := rebalance.Policy{}.WithDefaults()
	f.DurationVar(&s.policy.Interval, "balance-interval", def.Interval, "look at the servers' load so often")
	f.Float64Var(&s.policy.Factor, "balance-factor", def.Factor, "give away with so many times the servers' mean operations/s")
	f.Float64Var(&s.policy.Floor, "balance-floor", def.Floor, "and at least so many `OPS` a second")
	f.IntVar(&s.policy.Rounds, "balance-rounds", def.Rounds, "and both in so many intervals behind each other")
	f.Float64Var(&s.policy.Margin, "balance-margin", def.Margin, "move what leaves the other server, with it, below this one's operations/s by such a part of them")
	f.DurationVar(&s.policy.Rest, "balance-rest", def.Rest, "give nothing away for so long behind a move")
	f.DurationVar(&s.policy.Stay, "balance-stay", def.Stay, "leave what came to the server there for so long")
	f.IntVar(&s.policy.Entries, "balance-entries", def.Entries, "move directories with at most so many entries, which are copied")
	f.StringVar(&s.o.Security.Certificate, "cert", "", "certificate `FILE`, for mutual TLS between replicas (hydra init makes them)")
	f.StringVar(&s.o.Security.Key, "key", "", "its key `FILE`")
	f.StringVar(&s.o.Security.Authority, "ca", "", "`FILE` of the authority's certificate")
	f.BoolVar(&s.o.Security.TLS, "tls", false, "serve https with the certificate")
	f.StringVar(&s.o.Security.Tokens, "tokens", "", "`FILE` of bearer tokens; auto: one of your own, which is made where it is missing and found by skerry's commands")
	f.BoolVar(&s.o.Security.Insecure, "insecure", false, "listen beyond this machine without tokens, and without certificates between replicas")
	f.Int64Var(&s.o.Server.MaxBody, "max-body", 8<<20, "bytes of a request's body")
	f.Int64Var(&s.o.Server.MaxBodies, "max-bodies", bodylimit.DefaultRoom, "bytes of the bodies of all requests together")
	f.IntVar(&s.o.Server.MaxConnections, "max-connections", 4096, "that may be open at a time")
	f.DurationVar(&s.o.Server.Idle, "idle", 2*time.Minute, "close connections that are without a request for so long")
	f.DurationVar(&s.o.Server.Patience, "patience", 30*time.Second, "with a request's arrival, and with its answer's departure")
	c.MarkFlagsRequiredTogether("member", "name")
	c.MarkFlagsMutuallyExclusive("server", "servers")
	c.MarkFlagsRequiredTogether("cert", "key", "ca")
}
