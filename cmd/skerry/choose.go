package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skerry/internal/base/advice"
	"skerry/internal/base/strict"
	"skerry/internal/database/all"
	"skerry/internal/kernel/urgent"
	"skerry/internal/record"
	"skerry/internal/report/choice"
	"skerry/internal/run/choose"
	"skerry/internal/run/runner"
)

type chooseFlags struct {
	out, resume, explain string
	add, from            []string
	plan, asJSON         bool
}

func newChoose(a *app) *cobra.Command {
	var f chooseFlags
	c := &cobra.Command{
		Use:   "choose NEEDS",
		Short: "Find the database, and its settings, that does what a cloud needs",
		Long: "Race databases, each in the settings that matter, over the cloud, load and bad days of a needs file\n" +
			"(docs/choosing.md): what cannot do by design is left out with the reason, what is worse or fails beyond doubt goes\n" +
			"early, and the budget is spent on those that are close. The answer, its experiments and runs are in one folder.\n" +
			"--resume goes on with a folder; other needs are answered from what it has measured where that is enough.\n\n" +
			"The exit code is 0 when a candidate meets all needs, 1 when trials could not be run, 2 when the needs cannot be\n" +
			"answered (nothing was started then), 3 when no candidate meets them, and 130 when it was interrupted.",
		Example: `  skerry choose needs.yaml --plan
  skerry choose needs.yaml
  skerry choose needs.yaml --resume choices/20261124-101500
  skerry choose needs.yaml --resume choices/20261124-101500 --add etcd
  skerry choose needs.yaml --resume choices/20261124-101500 --explain redis-one-copy`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.explain != "" && f.resume == "" {
				return fmt.Errorf("%w: --explain goes with --resume DIR", errUsage)
			}
			return a.choose(cmd.Context(), f, args[0])
		},
	}
	c.Flags().StringVar(&f.out, "out", "choices", "make the choice's folder in `DIR`")
	c.Flags().StringVar(&f.resume, "resume", "", "go on with the choice in `DIR`, also with other needs")
	c.Flags().StringArrayVar(&f.add, "add", nil, "also consider the database `NAME` (repeatable)")
	c.Flags().StringArrayVar(&f.from, "from", nil, "use another build of a database: `NAME=PATH` (repeatable)")
	c.Flags().StringVar(&f.explain, "explain", "", "measure nothing, and tell all of `CANDIDATE`, as redis-one-copy")
	c.Flags().BoolVar(&f.plan, "plan", false, "only tell the candidates, and who is left out")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the answer as JSON")
	_ = c.RegisterFlagCompletionFunc("from", completeFrom) // fails only where there is no such flag
	return c
}

// choose answers a needs file.
func (a *app) choose(ctx context.Context, f chooseFlags, path string) error {
	contest, err := openContest(f, path)
	var mistakes strict.Problems
	if errors.As(err, &mistakes) || errors.Is(err, choose.ErrNeeds) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if err != nil {
		return err
	}
	if f.plan {
		return a.showContest(contest, f.asJSON)
	}
	if f.explain != "" {
		return a.explain(contest, f)
	}
	if err := a.race(ctx, f, contest); err != nil {
		return advice.With(err, "go on with: skerry choose %s --resume %s", path, contest.Dir)
	}
	return a.answer(contest, f.asJSON)
}

// openContest reads the needs and says who could do.
func openContest(f chooseFlags, path string) (*choose.Contest, error) {
	needs, err := choose.Read(path)
	if err != nil {
		return nil, err
	}
	registry := all.Registry()
	for _, name := range f.add {
		if len(needs.Consider) > 0 && !slices.Contains(needs.Consider, name) {
			needs.Consider = append(needs.Consider, name)
		}
	}
	dir := f.resume
	if dir == "" {
		dir = filepath.Join(f.out, time.Now().Format("20060102-150405"))
	} else if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("%w: looking for the choice: %w", errUsage, err)
	}
	return choose.Plan(needs, dir, registry)
}

// race measures what is worth it.
func (a *app) race(ctx context.Context, f chooseFlags, contest *choose.Contest) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	config := runner.Config{StateDir: a.stateDir, Version: version, Command: os.Args, Progress: a.progress(), Log: a.log, Urgent: urgent.This(), Source: record.File{From: f.from}}
	var err error
	if config.Exe, err = executable(); err != nil {
		return err
	}
	defer config.Progress.Done()
	config.Progress.Linef("%d candidates, %d bad days, %v: %s", len(contest.Candidates), len(contest.Needs.BadDays), contest.Needs.Budget, contest.Dir)
	return contest.Run(ctx, choose.By(config, all.Databases()), func(line string) { config.Progress.Linef("%s", line) })
}

// answer shows what came of a choice, and keeps it in the choice's folder.
func (a *app) answer(contest *choose.Contest, asJSON bool) error {
	answer := contest.Answer()
	page := filepath.Join(contest.Dir, "answer.html")
	if err := errors.Join(writeTo(page, func(w io.Writer) error { return choice.HTML(w, answer, contest.Dir) }),
		writeTo(filepath.Join(contest.Dir, "answer.json"), func(w io.Writer) error { return encodeJSON(w, answer) })); err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(a, answer); err != nil {
			return err
		}
	} else if err := choice.Text(a.out, answer); err != nil {
		return err
	}
	fmt.Fprintln(a.err, "answer:", page)
	if !slices.ContainsFunc(answer.Candidates, func(v choose.Verdict) bool { return v.Out == "" }) {
		return choose.ErrNone
	}
	return nil
}

// explain tells all of one candidate.
func (a *app) explain(contest *choose.Contest, f chooseFlags) error {
	if err := contest.Replay(); err != nil {
		return err
	}
	answer := contest.Answer()
	var known []string
	for _, v := range answer.Candidates {
		if v.ID == f.explain {
			if f.asJSON {
				return printJSON(a, v)
			}
			return choice.Explain(a.out, v)
		}
		known = append(known, v.ID)
	}
	for _, l := range contest.Left {
		if choose.Slug(l.Who) == f.explain {
			_, err := fmt.Fprintf(a.out, "%s was not tried: %s\n", l.Who, l.Why)
			return err
		}
	}
	return fmt.Errorf("%w: there is no candidate %q: there are %s", errUsage, f.explain, strings.Join(known, ", "))
}

// showContest says who would be raced.
func (a *app) showContest(contest *choose.Contest, asJSON bool) error {
	if asJSON {
		return printJSON(a, map[string]any{"candidates": contest.Candidates, "left": contest.Left})
	}
	for _, c := range contest.Candidates {
		fmt.Fprintf(a.out, "%s (reads %s)\n    gives up: %s\n", c.Label(), c.Reads, c.GivesUp)
	}
	for _, l := range contest.Left {
		fmt.Fprintf(a.out, "not tried: %s: %s\n", l.Who, l.Why)
	}
	return nil
}
