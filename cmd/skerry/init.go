package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/peterh/liner"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"skerry/internal/base/advice"
	"skerry/internal/database/all"
	"skerry/internal/event"
	"skerry/internal/experiment/draft"
	"skerry/internal/load/ycsb"
	"skerry/internal/topology"
)

func newInit(a *app) *cobra.Command {
	d := draft.Default()
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
					return fmt.Errorf("%w: %w", errUsage, err)
				}
				d.Events = append(d.Events, e)
			}
			file := ""
			if len(args) == 1 {
				file = args[0]
				d.Name = nameOf(file, d.Name, cmd.Flags().Changed("name"))
			}
			if !ready && a.asks() {
				var err error
				if d, err = a.askDraft(cmd.Context(), d); err != nil {
					return err
				}
			}
			return a.writeDraft(d, file)
		},
	}
	c.Flags().StringVar(&d.Name, "name", d.Name, "the experiment's name")
	c.Flags().StringVar(&d.Database, "database", d.Database, "what is measured")
	c.Flags().StringVar(&d.Topology, "topology", d.Topology, "a preset or a topology `FILE`: "+strings.Join(topology.Presets(), ", "))
	c.Flags().StringVar(&d.Client, "client", d.Client, "the `SITE` where the load comes from (default of another topology: its first)")
	c.Flags().StringVar(&d.Workload, "workload", d.Workload, "one of "+strings.Join(ycsb.Names(), ", ")+", or mdtest or namespace for directory trees")
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
	_ = c.RegisterFlagCompletionFunc("workload", cobra.FixedCompletions(ycsb.Names(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func offerNames() string {
	var names []string
	for _, o := range event.Offers() {
		names = append(names, o.ID)
	}
	return strings.Join(names, ", ")
}

// nameOf is the experiment's name where only its file has one.
func nameOf(file, name string, given bool) string {
	base := file[strings.LastIndexByte(file, '/')+1:]
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml")
	if given || base == "" {
		return name
	}
	return base
}

// questions are asked in the terminal that standard input is, until done.
func (a *app) questions(ctx context.Context) (q draft.Questions, done func()) {
	line := liner.NewLiner()
	line.SetCtrlCAborts(true)
	line.SetTabCompletionStyle(liner.TabPrints)
	q = draft.Questions{Out: a.out, Line: func(question string, choices []string) (string, error) {
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
			return "", errors.Join(fmt.Errorf("nothing was written: %w", err), ctx.Err())
		}
		return text, nil
	}}
	return q, func() { _ = line.Close() } // of a terminal that stays open
}

// asks tells whether somebody is there to be asked.
func (a *app) asks() bool {
	in, terminal := a.in.(*os.File)
	return terminal && term.IsTerminal(int(in.Fd()))
}

// askDraft asks for an experiment.
func (a *app) askDraft(ctx context.Context, d draft.Draft) (draft.Draft, error) {
	questions, done := a.questions(ctx)
	defer done()
	databases := all.Databases()
	asker := draft.Asker{
		Questions: questions, Databases: databaseNames(),
		Check: func(d draft.Draft) (draft.Places, error) {
			_, v, err := draft.Check(d, d.Name+".yaml", databases)
			if err != nil {
				return draft.Places{}, err
			}
			return draft.PlacesOf(v.Cloud()), nil
		},
	}
	return asker.Ask(d)
}

// writeDraft writes a draft's file, and what to do with it.
func (a *app) writeDraft(d draft.Draft, file string) error {
	if file == "" {
		file = d.Name + ".yaml"
	}
	text, v, err := draft.Check(d, file, all.Databases())
	if err != nil {
		return advice.With(fmt.Errorf("%w: %w", errUsage, err), "see skerry init --help")
	}
	v.Locate(all.Databases())
	if err := writeNew(file, text); err != nil {
		return err
	}
	if err := v.Describe(a.out, false); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "\nrun it with: skerry run %s\n", file)
	return err
}

// writeNew writes a file that is not there yet.
func writeNew(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return advice.With(fmt.Errorf("%w: %s is there already, and stays as it is", errUsage, file), "give the name of a new file")
	} else if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}
