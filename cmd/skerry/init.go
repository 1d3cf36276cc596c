package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/peterh/liner"
	"github.com/spf13/cobra"
	"golang.org/x/term"

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

// wizard writes a file from flags and answers.
type wizard[T draft.File] struct {
	draft     *T
	name      *string // of the file without .yaml; points into draft
	questions func(draft *T, places draft.Places, databases []string) []draft.Question
	check     func(draft T, path string) (made, error)
}

// made is a valid file before it is written.
type made struct {
	text  string
	cloud topology.Topology
	// describe prints what the file does.
	describe func() error
}

// run asks the questions, writes the file and prints the next command. It asks nothing if ready, or without a terminal.
func (w wizard[T]) run(a *app, cmd *cobra.Command, args []string, ready bool, next string) error {
	file := ""
	if len(args) == 1 {
		file = args[0]
		*w.name = nameOf(file, *w.name, cmd.Flags().Changed("name"))
	}
	if in, terminal := a.In.(*os.File); !ready && terminal && term.IsTerminal(int(in.Fd())) {
		line := liner.NewLiner()
		defer func() { _ = line.Close() }() // the terminal itself stays open
		answered, err := draft.Interview[T]{
			Line: reader(cmd.Context(), line), Out: a.Out, Databases: databaseNames(), Questions: w.questions,
			Check: func(d T) (draft.Places, error) {
				m, err := w.check(d, cmp.Or(file, "draft.yaml"))
				return draft.NewPlaces(m.cloud), err
			},
		}.Run(*w.draft)
		if err != nil {
			return err
		}
		*w.draft = answered
	}
	if file == "" {
		file = *w.name + ".yaml"
	}
	m, err := w.check(*w.draft, file)
	if err != nil {
		return advice.With(fmt.Errorf("%w: %w", cli.ErrUsage, err), "see %s --help", cmd.CommandPath())
	}
	if err := writeNew(file, m.text); err != nil {
		return err
	}
	if err := m.describe(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "\n%s %s\n", next, file)
	return err
}

// reader returns a function that reads an answer from a terminal.
func reader(ctx context.Context, line *liner.State) func(question string, choices []string) (string, error) {
	line.SetCtrlCAborts(true)
	line.SetTabCompletionStyle(liner.TabPrints)
	return func(question string, choices []string) (string, error) {
		line.SetCompleter(func(begun string) (fit []string) {
			for _, c := range choices {
				if strings.HasPrefix(c, begun) {
					fit = append(fit, c)
				}
			}
			return fit
		})
		text, err := line.Prompt(question)
		if err != nil {
			return "", errors.Join(fmt.Errorf("no file written: %w", err), ctx.Err())
		}
		return text, nil
	}
}

// nameOf derives the name from the file name, unless a flag set it.
func nameOf(file, name string, given bool) string {
	base := file[strings.LastIndexByte(file, '/')+1:]
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml")
	if given || base == "" {
		return name
	}
	return base
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
