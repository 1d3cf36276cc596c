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
		Long: "Ask for cloud, clients, load, what a database must do, and the bad days that it must live through, and write the\n" +
			"needs file that skerry choose takes (docs/choosing.md). Flags answer beforehand. With --yes, or where there is no\n" +
			"terminal, nothing is asked. FILE is needs.yaml if it is left out; a file that is there already stays as it is.",
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
	c.Flags().StringVar(&n.Cloud, "cloud", n.Cloud, "a preset or a topology `FILE`: "+strings.Join(topology.Presets(), ", "))
	c.Flags().StringSliceVar(&n.Clients, "client", n.Clients, "the `SITES` that requests come from (default of another cloud: its first)")
	c.Flags().StringVar(&n.Workload, "workload", n.Workload, "one of "+strings.Join(ycsb.BuiltinNames(), ", "))
	c.Flags().Float64Var(&n.Target, "target", n.Target, "operations a second that are asked for; 0 for as many as there can be")
	c.Flags().Int64Var(&n.Records, "records", n.Records, "in the table")
	c.Flags().StringArrayVar(&n.Must, "must", n.Must, "what a database has to do (repeatable)")
	c.Flags().StringArrayVar(&n.BadDays, "bad-day", n.BadDays, "what it must live through, as 'site_lost: Pune' (repeatable)")
	c.Flags().StringSliceVar(&n.Prefer, "prefer", n.Prefer, "what to choose by among those that do; the first ranks")
	c.Flags().StringSliceVar(&n.Consider, "consider", n.Consider, "`DATABASES`; all that are installed if it is left out")
	c.Flags().StringVar(&n.Budget, "budget", n.Budget, "how long the choice may take")
	c.Flags().BoolVarP(&ready, "yes", "y", false, "ask nothing")
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
