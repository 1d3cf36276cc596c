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
		Long: "Ask for the database, topology, workload, events and assertions, and write an experiment file for skerry run.\n" +
			"Flags answer questions in advance. With --yes, or without a terminal, no question is asked and every answer\n" +
			"without a flag has its default. The defaults alone make a valid experiment. FILE defaults to NAME.yaml. An\n" +
			"existing file is not overwritten. An event is one of: " + offerNames() + ".\n" +
			"An event affects one random node or link unless =TARGET names it, in its own part of the measurement unless at=\n" +
			"and for= set the time. docs/events.md lists more kinds for the file itself.\n" +
			"\n" +
			"skerry init needs asks for the needs of a cloud, and writes a needs file for skerry choose.",
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
	c.Flags().StringVar(&d.Name, "name", d.Name, "name of the experiment")
	c.Flags().StringVar(&d.Database, "database", d.Database, "database to measure")
	c.Flags().StringVar(&d.Topology, "topology", d.Topology, "preset or topology `FILE`: "+strings.Join(topology.Presets(), ", "))
	c.Flags().StringVar(&d.Client, "client", d.Client, "`SITE` of the client (default for another topology: its first site)")
	c.Flags().StringVar(&d.Workload, "workload", d.Workload,
		"one of "+strings.Join(ycsb.BuiltinNames(), ", ")+", or mdtest or namespace for directory trees")
	c.Flags().Int64Var(&d.Records, "records", d.Records, "records in the table before the measurement")
	c.Flags().IntVar(&d.Threads, "threads", d.Threads, "client threads, each with one operation in flight")
	c.Flags().Float64SliceVar(&d.Scales, "scale", d.Scales, "factor of every distance; several factors make several trials")
	c.Flags().IntVar(&d.Repetitions, "repetitions", d.Repetitions, "repetitions of each trial")
	c.Flags().StringVar(&d.Time, "time", d.Time, "duration of each measurement")
	c.Flags().StringArrayVar(&events, "event", nil,
		"event during the measurement: `EVENT[=TARGET][,at=TIME][,for=TIME][,amount=VALUE]` (repeatable)")
	c.Flags().BoolVar(&d.Audit, "audit", false, "read back every acknowledged write at the end")
	c.Flags().StringArrayVar(&d.Assert, "assert", d.Assert, "assertion that every trial must meet (repeatable)")
	c.Flags().BoolVarP(&ready, "yes", "y", false, "ask no questions")
	c.AddCommand(newInitNeeds(a))
	// Registration fails only for unknown flags.
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
