package main

import (
	"cmp"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/bearer"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
)

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
