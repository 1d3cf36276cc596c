package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/database/all"
	"skerry/internal/event"
	"skerry/internal/load/ycsb"
	"skerry/internal/run/draft"
	"skerry/internal/topology"
)

func newInit(a *app) *cobra.Command {
	d := draft.DefaultExperiment()
	var events []string
	var ready bool
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write an experiment file from a few answers",
		Long: "Ask for database, topology, workload, events and assertions, and write an experiment file that skerry run takes.\n" +
			"Flags answer beforehand. With --yes, or where there is no terminal, nothing is asked: what no flag says has\n" +
			"the default, and the defaults alone are an experiment that works. FILE is NAME.yaml if it is left out; a file\n" +
			"that is there already stays as it is. An event is one of: " + offerNames() + ".\n" +
			"It happens to one node or link at random unless =TARGET says to which, in a stretch of the measurement of its own\n" +
			"unless at= and for= say when. docs/events.md has many more kinds, for the file itself.\n\n" +
			"skerry init needs asks for what a cloud needs of a database, and writes the needs file that skerry choose takes.",
		Example: `  skerry init
  skerry init --database etcd --topology mesh:3 --yes
  skerry init cut.yaml --event cut=Pune~Sydney,at=10s,for=5s --event kill --audit --assert 'lost_writes == 0' --yes
  skerry init near-and-far.yaml --scale 0.2,1 --repetitions 3 --yes
  skerry init needs`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("topology") && !cmd.Flags().Changed("client") {
				d.Client = ""
			}
			for _, text := range events {
				e, err := draft.ParseEvent(text)
				if err != nil {
					return fmt.Errorf("%w: %w", cli.ErrUsage, err)
				}
				d.Events = append(d.Events, e)
			}
			w := wizard[draft.Experiment]{draft: &d, name: &d.Name, questions: (*draft.Experiment).Questions, check: a.checkExperiment}
			return w.run(a, cmd, args, ready, "run it with: skerry run")
		},
	}
	c.Flags().StringVar(&d.Name, "name", d.Name, "the experiment's name")
	c.Flags().StringVar(&d.Database, "database", d.Database, "what is measured")
	c.Flags().StringVar(&d.Topology, "topology", d.Topology, "a preset or a topology `FILE`: "+strings.Join(topology.Presets(), ", "))
	c.Flags().StringVar(&d.Client, "client", d.Client, "the `SITE` where the load comes from (default of another topology: its first)")
	c.Flags().StringVar(&d.Workload, "workload", d.Workload, "one of "+strings.Join(ycsb.BuiltinNames(), ", ")+", or mdtest or namespace for directory trees")
	c.Flags().Int64Var(&d.Records, "records", d.Records, "in the table when the measurement begins")
	c.Flags().IntVar(&d.Threads, "threads", d.Threads, "operations under way at once")
	c.Flags().Float64SliceVar(&d.Scales, "scale", d.Scales, "multiply every distance; of several each is a trial")
	c.Flags().IntVar(&d.Repetitions, "repetitions", d.Repetitions, "of each trial")
	c.Flags().StringVar(&d.Time, "time", d.Time, "how long each trial measures")
	c.Flags().StringArrayVar(&events, "event", nil, "what happens meanwhile: `EVENT[=TARGET][,at=TIME][,for=TIME][,amount=VALUE]` (repeatable)")
	c.Flags().BoolVar(&d.Audit, "audit", false, "read every acknowledged write back at the end")
	c.Flags().StringArrayVar(&d.Assert, "assert", d.Assert, "what every trial must reach (repeatable)")
	c.Flags().BoolVarP(&ready, "yes", "y", false, "ask nothing")
	c.AddCommand(newInitNeeds(a))
	// These fail only where there are no such flags.
	_ = c.RegisterFlagCompletionFunc("database", cobra.FixedCompletions(databaseNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("topology", cobra.FixedCompletions(topology.Presets(), cobra.ShellCompDirectiveDefault))
	_ = c.RegisterFlagCompletionFunc("workload", cobra.FixedCompletions(ycsb.BuiltinNames(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func offerNames() string {
	var names []string
	for _, o := range event.Offers() {
		names = append(names, o.ID)
	}
	return strings.Join(names, ", ")
}

// checkExperiment checks a draft of an experiment as the file at path.
func (a *app) checkExperiment(d draft.Experiment, path string) (made, error) {
	text, v, err := d.Check(path, all.Databases())
	if err != nil {
		return made{}, err
	}
	return made{text, v.Cloud(), func() error {
		v.NoteMissingDatabases(all.Databases())
		return v.Describe(a.Out, false)
	}}, nil
}
