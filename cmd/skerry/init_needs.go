package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/database/all"
	"skerry/internal/experiment/draft"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
	"skerry/internal/run/choose"
	"skerry/internal/run/choose/sketch"
	"skerry/internal/topology"
)

func newInitNeeds(a *app) *cobra.Command {
	s := sketch.Default()
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
				s.Clients = nil
			}
			file := ""
			if len(args) == 1 {
				file = args[0]
				s.Name = nameOf(file, s.Name, false)
			}
			if !ready && a.asks() {
				var err error
				if s, err = a.askSketch(cmd.Context(), s); err != nil {
					return err
				}
			}
			return a.writeSketch(s, file)
		},
	}
	c.Flags().StringVar(&s.Cloud, "cloud", s.Cloud, "a preset or a topology `FILE`: "+strings.Join(topology.Presets(), ", "))
	c.Flags().StringSliceVar(&s.Clients, "client", s.Clients, "the `SITES` that requests come from (default of another cloud: its first)")
	c.Flags().StringVar(&s.Workload, "workload", s.Workload, "one of "+strings.Join(ycsb.Names(), ", "))
	c.Flags().Float64Var(&s.Target, "target", s.Target, "operations a second that are asked for; 0 for as many as there can be")
	c.Flags().Int64Var(&s.Records, "records", s.Records, "in the table")
	c.Flags().StringArrayVar(&s.Must, "must", s.Must, "what a database has to do (repeatable)")
	c.Flags().StringArrayVar(&s.BadDays, "bad-day", s.BadDays, "what it must live through, as 'site_lost: Pune' (repeatable)")
	c.Flags().StringSliceVar(&s.Prefer, "prefer", s.Prefer, "what to choose by among those that do; the first ranks")
	c.Flags().StringSliceVar(&s.Consider, "consider", s.Consider, "`DATABASES`; all that are installed if it is left out")
	c.Flags().StringVar(&s.Budget, "budget", s.Budget, "how long the choice may take")
	c.Flags().BoolVarP(&ready, "yes", "y", false, "ask nothing")
	return c
}

// checkSketch plans the choice of a sketch.
func checkSketch(s sketch.Sketch, file string) (*choose.Contest, error) {
	machine, err := record.ThisMachine()
	if err != nil {
		return nil, err
	}
	return s.Check(file, all.Registry(), machine.MemoryBytes)
}

// askSketch asks for needs.
func (a *app) askSketch(ctx context.Context, s sketch.Sketch) (sketch.Sketch, error) {
	questions, done := a.questions(ctx)
	defer done()
	return sketch.Asker{Questions: questions, Databases: databaseNames(), Check: func(s sketch.Sketch) (draft.Places, error) {
		contest, err := checkSketch(s, s.Name+".yaml")
		if err != nil {
			return draft.Places{}, err
		}
		return draft.PlacesOf(contest.Cloud()), nil
	}}.Ask(s)
}

// writeSketch writes a sketch's file, and what would come of it.
func (a *app) writeSketch(s sketch.Sketch, file string) error {
	if file == "" {
		file = s.Name + ".yaml"
	}
	contest, err := checkSketch(s, file)
	if err != nil {
		return advice.With(fmt.Errorf("%w: %w", errUsage, err), "see skerry init needs --help")
	}
	if err := writeNew(file, s.YAML()); err != nil {
		return err
	}
	if err := a.showContest(contest, false); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "\nanswer it with: skerry choose %s\n", file)
	return err
}
