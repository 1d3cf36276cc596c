package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/consensus/ca"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

// identityFlags are the flags of the certificate of a process.
type identityFlags struct{ cert, key, authority string }

func (f *identityFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.cert, "cert", "", "certificate `FILE` for the data layer; requires --key and --ca")
	c.Flags().StringVar(&f.key, "key", "", "key `FILE` of the certificate")
	c.Flags().StringVar(&f.authority, "ca", "", "certificate `FILE` of the authority")
	c.MarkFlagsRequiredTogether("cert", "key", "ca")
}

// watch logs the expiry of a certificate until end is called.
func watch(ctx context.Context, i ca.Identity, log *slog.Logger) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { i.Watch(ctx, log) })
	return func() {
		cancel()
		all.Wait()
	}
}

func (f *identityFlags) load() (i ca.Identity, given bool, err error) {
	if f.cert == "" {
		return i, false, nil
	}
	i, err = ca.Load(f.cert, f.key, f.authority, time.Now())
	return i, true, err
}

// client returns the TLS configuration of connections to the data layer, nil without a certificate.
func (f *identityFlags) client() (func() *tls.Config, error) {
	i, given, err := f.load()
	if err != nil || !given {
		return nil, err
	}
	return i.Client(nil, ca.Member, ca.Application), nil
}

func newStatus(a *cli.App) *cobra.Command {
	var reach reachFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [ADDR...]",
		Short: "Print the status of a cluster",
		Long: "Print the status of a cluster as a member or a load balancer reports it: the leader, the committed index of the log,\n" +
			"the applied index of each cloud's database, and the size of the log on disk. Kind and staleness of a database are\n" +
			"known only to members of its cloud. Of several addresses, the first that answers is used.",
		Example: "  hydra status 127.0.0.1:7070\n  hydra status 10.0.0.1:7070 10.1.0.1:7070 --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := reach.open(a, args)
			if err != nil {
				return err
			}
			defer data.Close()
			s, err := data.Status(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(s)
			}
			return printStatus(a, s)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the status as JSON")
	reach.add(c)
	return c
}

func printStatus(a *cli.App, s api.Status) error {
	leader := s.Leader
	if leader == "" {
		leader = "none"
	}
	fmt.Fprintf(a.Out, "cluster %s, as reported by %s (%s, %s)\n", s.Cluster, s.Member, s.Cloud, s.Role)
	fmt.Fprintf(a.Out, "leader %s, term %d, committed %d, log %d..%d in %.1f MB\n",
		leader, s.Term, s.Commit, s.Log.First, s.Log.Last, float64(s.Log.Bytes)/1e6)
	if c := s.Certificate; c != nil {
		days := c.LeftS / int64((24 * time.Hour).Seconds())
		fmt.Fprintf(a.Out, "certificate of %s until %s (%d days)\n", s.Member, c.Expires.Format(time.DateOnly), days)
	}
	if s.Problem != "" {
		fmt.Fprintf(a.Out, "PROBLEM: %s\n", s.Problem)
	}
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nMEMBER\tCLOUD\tPART\tPEER\tAPI")
	for _, m := range s.Members {
		part := "voter"
		switch {
		case m.Name == s.Leader:
			part = "leader"
		case m.Witness:
			part = "witness"
		case m.Learner:
			part = "learner"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.Cloud, part, m.Peer, m.API)
	}
	fmt.Fprintln(t, "\nDATABASE\tKIND\tSTATE\tAPPLIED\tLAG\tSTALENESS\tPROBLEM")
	for _, d := range s.Databases {
		age := "-"
		if d.StalenessMS >= 0 {
			age = fmt.Sprintf("%.0f ms", d.StalenessMS)
		}
		kind := cmp.Or(d.Kind, "-")
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", d.Cloud, kind, d.State, d.Applied, d.Lag, age, d.Problem)
	}
	return t.Flush()
}

// reachFlags are the flags of connections to a cluster.
type reachFlags struct {
	id        identityFlags
	tokenFile string
}

func (f *reachFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.tokenFile, "token-file", "", "`FILE` with the bearer token")
	f.id.add(c)
}

// open returns a client of the members or load balancers at the given addresses.
func (f *reachFlags) open(a *cli.App, at []string) (*hydraclient.Client, error) {
	if len(at) == 0 {
		at = []string{defaultAPI}
	}
	config, err := f.id.client()
	if err != nil {
		return nil, err
	}
	token, err := a.Token(f.tokenFile, bearer.Write, config != nil, at...)
	if err != nil {
		return nil, err
	}
	data, err := hydraclient.New(hydraclient.Config{Endpoints: at, TLS: config, Token: token})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	return data, nil
}

// defaultAPI is the default address of a member.
const defaultAPI = "127.0.0.1:7070"
