package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/base/atomicfile"
	"skerry/internal/base/strict"
	"skerry/internal/database/all"
	"skerry/internal/kernel/realtime"
	"skerry/internal/kernel/rootless"
	"skerry/internal/record"
	"skerry/internal/report/choice"
	"skerry/internal/run/choose"
	"skerry/internal/run/dispatch"
	"skerry/internal/run/runner"
)

// choicesFolder is the default folder of choices.
const choicesFolder = "choices"

type chooseFlags struct {
	out, resume, needs, explain string
	add, from                   []string
	plan, asJSON                bool
	measured, exhaustive        bool
	parallel                    string
	repetitions                 int
	engine                      engineFlags
	machines                    string
}

func newChoose(a *app) *cobra.Command {
	var f chooseFlags
	c := &cobra.Command{
		Use:   "choose [NEEDS]",
		Short: "Find the database and settings that meet the needs of a cloud",
		Long: "Race databases, each in its relevant settings, on the cloud, load and bad days of a needs file\n" +
			"(docs/choosing.md). A candidate whose design cannot meet a need is excluded, with the reason. A candidate that\n" +
			"is worse or fails a need beyond doubt leaves the race early, so that the budget goes to close candidates. The\n" +
			"answer, its experiments and its runs are in one folder. --resume continues the choice in a folder. --needs\n" +
			"answers other needs from the measurements in the folder, and measures only what is missing.\n" +
			"\n" +
			"The exit code is 0 when a candidate meets all needs, 1 when no trial could run or none was valid, 2 when the\n" +
			"needs cannot be answered (nothing was started), 3 when no candidate meets them, and 130 when the race was\n" +
			"interrupted.",
		Example: `  skerry choose needs.yaml --plan
  skerry choose needs.yaml
  skerry choose needs.yaml --parallel auto
  skerry choose --resume choices/20261124-101500
  skerry choose --resume choices/20261124-101500 --needs other.yaml --measured
  skerry choose --resume choices/20261124-101500 --add etcd
  skerry choose --resume choices/20261124-101500 --explain redis-one-copy
  skerry choose --resume choices/20261124-101500 --exhaustive --repetitions 1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && f.needs != "" {
				return fmt.Errorf("%w: needs file given twice, as an argument and with --needs", cli.ErrUsage)
			}
			if len(args) == 1 {
				f.needs = args[0]
			}
			switch {
			case f.needs == "" && f.resume == "":
				return advice.With(fmt.Errorf("%w: needs file or --resume DIR required", cli.ErrUsage),
					"see skerry choose --help; docs/choosing.md has an example")
			case f.repetitions < 0 || f.repetitions > 20:
				return fmt.Errorf("%w: --repetitions must be 1 to 20", cli.ErrUsage)
			case (f.explain != "" || f.measured) && f.resume == "":
				return fmt.Errorf("%w: --explain and --measured require --resume DIR", cli.ErrUsage)
			}
			if err := checkFlags(cmd.Flags(), engineRules); err != nil {
				return err
			}
			return a.choose(cmd.Context(), f)
		},
	}
	c.Flags().StringVar(&f.out, "out", choicesFolder, "create the folder of the choice in `DIR`")
	c.Flags().StringVar(&f.resume, "resume", "", "resume the choice in `DIR`")
	c.Flags().StringVar(&f.needs, "needs", "", "with --resume, answer the needs in `FILE` instead of the original ones")
	c.Flags().BoolVar(&f.measured, "measured", false, "with --resume, answer from existing measurements only")
	c.Flags().BoolVar(&f.exhaustive, "exhaustive", false,
		"measure every candidate on every day with repetitions, regardless of the budget; a baseline for the race")
	c.Flags().IntVar(&f.repetitions, "repetitions", 0,
		"repeat the winner's days `N` times, with --exhaustive all days (default: the needs file)")
	c.Flags().StringVar(&f.parallel, "parallel", "1",
		"run up to `N` trials at once; auto fits them to this machine (default: the needs file)")
	c.Flags().StringArrayVar(&f.add, "add", nil, "also consider database `NAME` (repeatable)")
	c.Flags().StringArrayVar(&f.from, "from", nil, "use another build of a database: `NAME=PATH` (repeatable)")
	c.Flags().StringVar(&f.explain, "explain", "", "explain `CANDIDATE`, such as redis-one-copy, without measuring")
	c.Flags().BoolVar(&f.plan, "plan", false, "print the candidates and the exclusions without measuring")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the answer as JSON")
	c.Flags().StringVar(&f.machines, "machines", "", "run each lab on the machines in a machines `FILE`")
	f.engine.addEngine(c)
	c.MarkFlagsMutuallyExclusive("machines", "on")
	c.MarkFlagsMutuallyExclusive("resume", "out")
	_ = c.RegisterFlagCompletionFunc("from", completeFrom) // fails only where there is no such flag
	return c
}

// choose runs the race of a needs file and prints the answer.
func (a *app) choose(ctx context.Context, f chooseFlags) error {
	contest, err := openContest(f)
	var mistakes strict.Problems
	if errors.As(err, &mistakes) || errors.Is(err, choose.ErrNeeds) || errors.Is(err, choose.ErrFolder) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	if err != nil {
		return err
	}
	switch {
	case f.plan:
		return a.showContest(contest, f.asJSON)
	case f.explain != "":
		return a.explain(contest, f)
	case f.measured:
		if err := contest.Replay(); err != nil {
			return err
		}
		return a.showAnswer(contest.Answer(), "", f.asJSON)
	}
	release, err := contest.Lock()
	if err != nil {
		return err
	}
	defer func() { _ = release() }() // the lock ends with the process
	if err := a.race(ctx, f, contest); err != nil {
		return advice.With(err, "resume with: skerry choose --resume %s", contest.Dir)
	}
	answer, page, err := saveAnswer(contest, false)
	if err == nil {
		err = contest.SaveState("", answer, true)
	}
	if err != nil {
		return err
	}
	return a.showAnswer(answer, page, f.asJSON)
}

// openContest reads the needs and selects the candidates.
func openContest(f chooseFlags) (*choose.Contest, error) {
	dir := f.resume
	var needs choose.Needs
	var err error
	switch {
	case dir == "":
		dir = filepath.Join(f.out, time.Now().Format("20060102-150405"))
		needs, err = choose.Read(f.needs)
	case f.needs == "":
		needs, err = choose.ReadSavedNeeds(dir)
	default:
		if _, err := choose.ReadState(dir); err != nil {
			return nil, fmt.Errorf("%w: %w", choose.ErrFolder, err)
		}
		needs, err = choose.Read(f.needs)
	}
	if err != nil {
		return nil, err
	}
	if f.parallel != "1" {
		if err := needs.Parallel.UnmarshalText([]byte(f.parallel)); err != nil {
			return nil, fmt.Errorf("%w: --parallel: %w", choose.ErrNeeds, err)
		}
	}
	if f.repetitions > 0 {
		needs.Repetitions = f.repetitions
	}
	for _, name := range f.add {
		if o := (choose.Considered{Name: name}); len(needs.Consider) > 0 && !slices.Contains(needs.Consider, o) {
			needs.Consider = slices.Insert(needs.Consider, 0, o)
		}
	}
	how := choose.Options{Exhaustive: f.exhaustive}
	elsewhere := f.engine.on != "" || f.machines != ""
	if !elsewhere {
		machine, err := record.DescribeMachine()
		if err != nil {
			return nil, err
		}
		how.Memory = machine.MemoryBytes
	}
	contest, err := choose.Plan(needs, dir, all.Registry(), how)
	if err != nil {
		return nil, err
	}
	contest.Elsewhere = elsewhere
	if elsewhere && contest.OwnClusters() {
		return nil, advice.With(fmt.Errorf("%w: clusters of your own are measured from this machine", choose.ErrNeeds),
			"leave out --on and --machines")
	}
	return contest, checkRights(contest)
}

// checkRights refuses clusters of the user's next to labs without root: the labs would be in a user namespace, whose
// network has no way to the clusters.
func checkRights(contest *choose.Contest) error {
	needed, err := rootless.Needed()
	if err != nil || !contest.OwnClusters() || !contest.NeedsLab() || !needed && !rootless.Inside() {
		return err
	}
	return advice.With(fmt.Errorf("%w: labs and clusters of your own are measured in one choice by root only", choose.ErrNeeds),
		"run this command as root, or consider only one kind")
}

// race measures the candidates until the answer is clear or the budget is spent.
func (a *app) race(ctx context.Context, f chooseFlags, contest *choose.Contest) (err error) {
	config := runner.Config{StateDir: a.stateDir, Version: version, Command: os.Args, Progress: a.Progress(), Log: a.Log,
		Urgent: realtime.Current(), Source: record.File{From: f.from}}
	if config.Exe, err = executable(); err != nil {
		return err
	}
	launch := runner.Run
	if f.engine.on != "" {
		cancel := func() bool { return true }
		launch = func(ctx context.Context, c runner.Config) (string, error) {
			return dispatch.Run(ctx, dispatch.Config{Config: c, On: f.engine.on, Options: f.engine.options, Cancel: cancel})
		}
	} else if err := a.prepareRun(ctx, contest.NeedsLab()); err != nil {
		return err
	}
	if f.machines != "" {
		set, err := onMachines(f.machines)
		if err != nil {
			return err
		}
		config.Source.Set = []string{set}
	}
	defer config.Progress.Done()
	for _, note := range contest.Notes {
		config.Progress.Linef("note: %s", note)
	}
	budget := contest.Needs.Budget.String()
	if f.exhaustive {
		budget = "all trials"
	}
	config.Progress.Linef("%d candidates, %d bad days, %s: %s", len(contest.Candidates), len(contest.Needs.BadDays), budget, contest.Dir)
	return contest.Run(ctx, choose.NewMeasure(config, all.Databases(), launch), func(line string) error {
		config.Progress.Linef("%s", line)
		answer, _, err := saveAnswer(contest, true)
		return errors.Join(err, contest.SaveState(line, answer, false))
	})
}

// saveAnswer writes the current answer of a choice to its folder, and returns the path of the page.
func saveAnswer(contest *choose.Contest, running bool) (answer choose.Answer, page string, err error) {
	answer = contest.Answer()
	answer.Running = running
	file, page := filepath.Join(contest.Dir, choose.AnswerFile), filepath.Join(contest.Dir, choose.PageFile)
	if answer.Exhaustive {
		if raced, err := choose.ReadAnswer(file); err == nil {
			answer.Compared = answer.Compare(raced)
		}
		file, page = filepath.Join(contest.Dir, choose.GridFile), filepath.Join(contest.Dir, choose.GridPage)
	}
	return answer, page, errors.Join(atomicfile.Write(page, func(w io.Writer) error { return choice.HTML(w, answer, contest.Dir) }),
		atomicfile.Write(file, func(w io.Writer) error { return cli.EncodeJSON(w, answer) }))
}

// showAnswer prints an answer and the path of its page.
func (a *app) showAnswer(answer choose.Answer, page string, asJSON bool) error {
	if asJSON {
		if err := a.PrintJSON(answer); err != nil {
			return err
		}
	} else if err := choice.Text(a.Out, answer); err != nil {
		return err
	}
	if page != "" {
		fmt.Fprintln(a.Err, "answer:", page)
	}
	return answer.Err()
}

// explain prints the details of one candidate.
func (a *app) explain(contest *choose.Contest, f chooseFlags) error {
	if err := contest.Replay(); err != nil {
		return err
	}
	answer := contest.Answer()
	var known []string
	for _, v := range answer.Candidates {
		if v.ID == f.explain {
			if f.asJSON {
				return a.PrintJSON(v)
			}
			return choice.Explain(a.Out, v)
		}
		known = append(known, v.ID)
	}
	for _, l := range contest.Excluded {
		if choose.Slug(l.Who) == f.explain {
			_, err := fmt.Fprintf(a.Out, "%s excluded: %s\n", l.Who, l.Why)
			return err
		}
	}
	return fmt.Errorf("%w: unknown candidate %q; candidates are %s", cli.ErrUsage, f.explain, strings.Join(known, ", "))
}

// showContest prints the candidates and the exclusions.
func (a *app) showContest(contest *choose.Contest, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(map[string]any{"candidates": contest.Candidates, "left": contest.Excluded, "notes": contest.Notes})
	}
	for _, c := range contest.Candidates {
		if c.Own != "" {
			a.showOwn(c, contest.Needs.Load.Records)
			continue
		}
		fmt.Fprintf(a.Out, "%s (reads %s)\n    gives up: %s\n", c.Label(), c.Reads, c.GivesUp)
		if c.Reduced != "" {
			fmt.Fprintf(a.Out, "    on %s: %s\n", strings.Join(c.Members, ", "), c.Reduced)
		}
	}
	for _, n := range contest.Notes {
		fmt.Fprintln(a.Out, "note:", n)
	}
	for _, l := range contest.Excluded {
		fmt.Fprintf(a.Out, "excluded: %s: %s\n", l.Who, l.Why)
	}
	return nil
}

// showOwn prints what trials do to a cluster that Skerry did not start, and what they cannot measure there.
func (a *app) showOwn(c choose.Candidate, records int64) {
	fmt.Fprintf(a.Out, "%s at %s\n"+
		"    each trial writes up to %d records, and what its workload inserts, to a table skerry_... of its own, and drops it\n",
		c.Label(), c.Location, records)
	for _, command := range c.Commands {
		fmt.Fprintf(a.Out, "    runs here: %s\n", command)
	}
	for _, lack := range c.NotMeasured {
		fmt.Fprintf(a.Out, "    not measured: %s\n", lack)
	}
}
