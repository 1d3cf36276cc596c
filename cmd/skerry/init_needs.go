package main

import (
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/database/all"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
	"skerry/internal/run/draft"
	"skerry/internal/topology"
)

func newInitNeeds(a *app) *cobra.Command {
	n := draft.DefaultNeeds()
	var ready bool
	c := &cobra.Command{
		Use:   "needs [FILE]",
		Short: "Write a needs file for skerry choose from a few answers",
		Long: "Ask for the cloud, clients, load, requirements and bad days, and write a needs file for skerry choose\n" +
			"(docs/choosing.md). Flags answer questions in advance. With --yes, or without a terminal, no question is asked.\n" +
			"FILE defaults to needs.yaml. An existing file is not overwritten.",
		Example: `  skerry init needs
  skerry init needs ship.yaml --cloud mesh:5 --must 'p99 < 1s' --must 'read: linearizable' --bad-day 'flap: any' --yes
  skerry init needs --consider redis,etcd,postgres --budget 15min --yes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("cloud") && !cmd.Flags().Changed("client") {
				n.Clients = nil
			}
			w := wizard[draft.Needs]{draft: &n, name: &n.Name, questions: (*draft.Needs).Questions, check: a.checkNeeds}
			return w.run(a, cmd, args, ready, "answer it with: skerry choose")
		},
	}
	c.Flags().StringVar(&n.Cloud, "cloud", n.Cloud, "preset or topology `FILE`: "+strings.Join(topology.Presets(), ", "))
	c.Flags().StringSliceVar(&n.Clients, "client", n.Clients, "`SITES` of the clients (default for another cloud: its first site)")
	c.Flags().StringVar(&n.Workload, "workload", n.Workload, "one of "+strings.Join(ycsb.BuiltinNames(), ", "))
	c.Flags().Float64Var(&n.Target, "target", n.Target, "target rate in operations per second; 0 for the maximum")
	c.Flags().Int64Var(&n.Records, "records", n.Records, "records in the table")
	c.Flags().StringArrayVar(&n.Must, "must", n.Must, "requirement of the database (repeatable)")
	c.Flags().StringArrayVar(&n.BadDays, "bad-day", n.BadDays,
		"failure that the database must survive, such as 'site_lost: Pune' (repeatable)")
	c.Flags().StringSliceVar(&n.Prefer, "prefer", n.Prefer,
		"criteria for choosing among the databases that meet the needs; the first one ranks")
	c.Flags().StringSliceVar(&n.Consider, "consider", n.Consider, "`DATABASES` to consider (default: all that are installed)")
	c.Flags().StringVar(&n.Budget, "budget", n.Budget, "time budget of the choice")
	c.Flags().BoolVarP(&ready, "yes", "y", false, "ask no questions")
	return c
}

// checkNeeds checks a draft of needs as the file at path.
func (a *app) checkNeeds(n draft.Needs, path string) (made, error) {
	machine, err := record.DescribeMachine()
	if err != nil {
		return made{}, err
	}
	text, contest, err := n.Check(path, all.Registry(), machine.MemoryBytes)
	if err != nil {
		return made{}, err
	}
	return made{text, contest.Cloud(), func() error { return a.showContest(contest, false) }}, nil
}
