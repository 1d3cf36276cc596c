package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/database/all"
	"skerry/internal/event"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
	"skerry/internal/run/draft"
	"skerry/internal/topology"
)

func newInit(a *app) *cobra.Command {
	d := draft.DefaultExperiment()
	var events []string
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write an experiment file",
		Long: "Write an experiment file for skerry run, with the database, topology, workload, events and assertions of the flags.\n" +
			"The defaults alone make a valid experiment. FILE defaults to NAME.yaml. An existing file is not overwritten.\n" +
			"An event is one of: " + offerNames() + ".\n" +
			"An event affects one random node or link unless =TARGET names it, in its own part of the measurement unless at=\n" +
			"and for= set the time. docs/events.md lists more kinds for the file itself. The dashboard has a form for the same\n" +
			"file (skerry serve).\n" +
			"\n" +
			"skerry init needs writes a needs file for skerry choose.",
		Example: `  skerry init
  skerry init --database etcd --topology mesh:3
  skerry init cut.yaml --event cut=Pune~Sydney,at=10s,for=5s --event kill --audit --assert 'lost_writes == 0'
  skerry init near-and-far.yaml --scale 0.2,1 --repetitions 3
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
			file := fileName(cmd, args, &d.Name)
			text, v, err := d.Check(file, all.Databases())
			if err != nil {
				return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "see %s --help", cmd.CommandPath())
			}
			if err := writeNew(file, text); err != nil {
				return err
			}
			v.NoteMissingDatabases(all.Databases())
			return errors.Join(v.Describe(a.Out, false), a.printNext(file, "docs/experiment-reference.md", "run"))
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

func newInitNeeds(a *app) *cobra.Command {
	n := draft.DefaultNeeds()
	c := &cobra.Command{
		Use:   "needs [FILE]",
		Short: "Write a needs file for skerry choose",
		Long: "Write a needs file for skerry choose (docs/choosing.md), with the cloud, clients, load, requirements and bad days of\n" +
			"the flags. FILE defaults to needs.yaml. An existing file is not overwritten.",
		Example: `  skerry init needs
  skerry init needs ship.yaml --cloud mesh:5 --must 'p99 < 1s' --must 'read: linearizable' --bad-day 'flap: any'
  skerry init needs --consider redis,etcd,postgres --budget 15min`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("cloud") && !cmd.Flags().Changed("client") {
				n.Clients = nil
			}
			file := fileName(cmd, args, &n.Name)
			machine, err := record.DescribeMachine()
			if err != nil {
				return err
			}
			text, contest, err := n.Check(file, all.Registry(), machine.MemoryBytes)
			if err != nil {
				return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "see %s --help", cmd.CommandPath())
			}
			if err := writeNew(file, text); err != nil {
				return err
			}
			return errors.Join(a.showContest(contest, false), a.printNext(file, "docs/choosing.md", "choose"))
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
	return c
}

// printNext prints how to change a new file and how to use it.
func (a *app) printNext(file, page, command string) error {
	_, err := fmt.Fprintf(a.Out, "\nedit %s as needed (%s describes its keys), then: skerry %s %s\n", file, page, command, file)
	return err
}

// fileName returns the name of the file to write. Without the flag --name, an argument FILE also sets *name.
func fileName(cmd *cobra.Command, args []string, name *string) string {
	if len(args) == 0 {
		return *name + ".yaml"
	}
	base := filepath.Base(args[0])
	if base = strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml"); base != "" && !cmd.Flags().Changed("name") {
		*name = base
	}
	return args[0]
}

// writeNew writes a new file. It fails if the file exists.
func writeNew(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return advice.With(fmt.Errorf("%w: %s already exists", cli.ErrUsage, file), "choose another file name")
	} else if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
