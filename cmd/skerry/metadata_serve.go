package main

import (
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/advice"
	"skerry/internal/metadata/balance"
	"skerry/internal/metadata/daemon"
	"skerry/internal/metadata/journal"
)

func newMetadataServe(a *app) *cobra.Command {
	var o daemon.Options
	var group daemon.Group
	var share daemon.Share
	var policy balance.Policy
	var balances bool
	var addrFile string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a directory tree",
		Long: "Serve a directory tree until interrupted. What is acknowledged is on disk: the server can be killed at any\n" +
			"moment, and goes on where it was when it is started on the same directory again.\n\n" +
			"With --member, it is one of several replicas: what is acknowledged is on the disks of a majority, any replica\n" +
			"answers, and losing a minority loses nothing.\n\n" +
			"With --server, it is one of several servers that have a tree together, each of them alone or a group of replicas:\n" +
			"any of them answers for the whole tree. With --balance, a server that has more to do than the others gives them\n" +
			"directories, by their operations per second, while it serves.",
		Example: "  skerry metadata serve --listen 127.0.0.1:8080 --data /var/lib/metadata\n" +
			"  curl -d 'mkdir -p /a/b' http://127.0.0.1:8080/\n" +
			"  skerry metadata serve --listen 127.0.0.1:8081 --data m1 --name m1 \\\n" +
			"    --member m1=127.0.0.1:9081 --member m2=127.0.0.1:9082 --member m3=127.0.0.1:9083\n" +
			"  skerry metadata serve --listen 127.0.0.1:8080 --data g1 --cluster g1 --root g1 \\\n" +
			"    --server g1=127.0.0.1:8080 --server g2=127.0.0.1:8090",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = a.log
			if len(group.Members) > 0 {
				o.Group = &group
			}
			if len(share.Servers) > 0 {
				share.Name = group.Cluster
				o.Share = &share
			}
			if balances && o.Share == nil {
				return advice.With(fmt.Errorf("%w: there is none to give anything to", daemon.ErrShare), "name the servers: --server NAME=ADDR for each, --root NAME")
			}
			if balances {
				share.Balance = &policy
			}
			o.Ready = func(addr net.Addr, r journal.Recovery) error {
				if addrFile != "" {
					if err := daemon.WriteAddr(addrFile, addr); err != nil {
						return err
					}
				}
				_, err := fmt.Fprintf(a.out, "serving %s on http://%s/ (%d records, read in %s)\n", o.Dir, addr, r.Snapshot+r.Records, r.Took.Round(time.Millisecond))
				return err
			}
			return daemon.Run(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8080", "answer on `ADDR`")
	f.StringVar(&addrFile, "addr-file", "", "write the address to `FILE` once the server answers, for scripts")
	f.StringVar(&o.Dir, "data", "metadata-data", "keep the tree in `DIR`, which is made where it is missing")
	f.Int64Var(&o.Journal.SegmentBytes, "segment-bytes", 64<<20, "of log in a file")
	f.Int64Var(&o.Journal.SnapshotBytes, "snapshot-bytes", 128<<20, "of log between two snapshots, or as much as the last snapshot has")
	f.StringArrayVar(&group.Members, "member", nil, "a replica, `NAME=ADDR`: where the others reach it (repeatable; the same at each, this one among them)")
	f.BoolVar(&group.Join, "join", false, "wait to be taken into a running group (skerry metadata member add); --member is this replica alone")
	f.StringVar(&group.Name, "name", "", "`NAME` of this replica")
	f.StringVar(&group.Cluster, "cluster", "metadata", "`NAME` of the server, which is that of its group of replicas")
	f.StringArrayVar(&share.Servers, "server", nil, "a server that shares the tree, `NAME=ADDR[,ADDR...]`, an address for each replica (repeatable; the same at each)")
	f.StringVar(&share.Root, "root", "", "`NAME` of the server that has the root")
	f.BoolVar(&balances, "balance", false, "give hot directories to servers that have less to do")
	def := balance.Policy{}.WithDefaults()
	f.DurationVar(&policy.Interval, "balance-interval", def.Interval, "look at the servers' load so often")
	f.Float64Var(&policy.Factor, "balance-factor", def.Factor, "give away with so many times the servers' mean operations/s")
	f.Float64Var(&policy.Floor, "balance-floor", def.Floor, "and at least so many `OPS` a second")
	f.IntVar(&policy.Rounds, "balance-rounds", def.Rounds, "and both in so many intervals behind each other")
	f.Float64Var(&policy.Margin, "balance-margin", def.Margin, "move what leaves the other server, with it, below this one's operations/s by such a part of them")
	f.DurationVar(&policy.Rest, "balance-rest", def.Rest, "give nothing away for so long behind a move")
	f.DurationVar(&policy.Stay, "balance-stay", def.Stay, "leave what came to the server there for so long")
	f.IntVar(&policy.Entries, "balance-entries", def.Entries, "move directories with at most so many entries, which are copied")
	f.StringVar(&group.Certificate, "cert", "", "certificate `FILE`, for mutual TLS between replicas (skerry hydra init makes them)")
	f.StringVar(&group.Key, "key", "", "its key `FILE`")
	f.StringVar(&group.Authority, "ca", "", "`FILE` of the authority's certificate")
	f.Int64Var(&o.Server.MaxBody, "max-body", 8<<20, "bytes of a request's body")
	f.IntVar(&o.Server.MaxConnections, "max-connections", 4096, "that may be open at a time")
	f.DurationVar(&o.Server.Idle, "idle", 2*time.Minute, "close connections that are without a request for so long")
	f.DurationVar(&o.Server.Patience, "patience", 30*time.Second, "with a request's arrival, and with its answer's departure")
	c.MarkFlagsRequiredTogether("member", "name")
	c.MarkFlagsRequiredTogether("server", "root")
	c.MarkFlagsRequiredTogether("cert", "key", "ca")
	return c
}
