package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"skerry/internal/run/bundle"
	"skerry/internal/run/runner"
)

type taskFlags struct {
	only, plan, to string
	suspect        bool
}

// newAgentTask measures trials of a plan that came along, and sends the results home.
func newAgentTask(a *app) *cobra.Command {
	var f taskFlags
	c := &cobra.Command{
		Use:   "task",
		Short: "Measure trials of a plan and print their results, for skerry run --on",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ids, err := runner.ParseTrials(f.only)
			if err != nil {
				return err
			}
			if err := a.prepare(cmd.Context()); err != nil {
				return err
			}
			return a.task(cmd.Context(), f, ids)
		},
	}
	c.Flags().StringVar(&f.only, "only", "", "the trials, as for skerry run")
	c.Flags().StringVar(&f.plan, "plan", "", "the packed plan's `FILE`; without it standard input has it, behind its length, and the task ends when that does")
	c.Flags().StringVar(&f.to, "to", "", "put the results into `FILE`, by the link that stands in @FILE, or by a link, in place of printing them")
	c.Flags().BoolVar(&f.suspect, "suspect", false, "also those with a suspect result")
	return c
}

func (a *app) task(ctx context.Context, f taskFlags, only []int) (err error) {
	dir, err := os.MkdirTemp("", "skerry-task-")
	if err != nil {
		return fmt.Errorf("making room for the task: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if f.plan != "" {
		err = unpackFile(f.plan, dir)
	} else {
		err = unpackInput(a.In, dir, stop)
	}
	if err != nil {
		return err
	}
	source, err := runner.ReadRunSource(dir, nil)
	if err != nil {
		return err
	}
	source.Path = filepath.Join(dir, source.Path)
	c, err := a.configOf(runner.Config{StateDir: a.stateDir, Suspect: f.suspect, Version: version, Command: os.Args, Progress: a.Progress(), Log: a.Log}, source)
	if err != nil {
		return err
	}
	// What was measured before something went wrong counts.
	return errors.Join(runner.Work(ctx, dir, c, only), a.deliver(ctx, f.to, func(w io.Writer) error { return bundle.WriteResults(w, dir, only) }))
}

// deliver sends results to where they are waited for, "" for standard output.
func (a *app) deliver(ctx context.Context, to string, send func(io.Writer) error) error {
	if to == "" {
		return send(a.Out)
	}
	if file, is := strings.CutPrefix(to, "@"); is {
		link, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading where the results go: %w", err)
		}
		to = strings.TrimSpace(string(link))
	}
	return bundle.DeliverResults(ctx, to, send)
}

func unpackFile(plan, dir string) error {
	f, err := os.Open(plan)
	if err != nil {
		return fmt.Errorf("reading the plan: %w", err)
	}
	defer f.Close()
	return bundle.Unpack(f, dir)
}

// unpackInput reads the plan, and calls stop when the input ends after it: then nobody waits for
// the results any more.
func unpackInput(in io.Reader, dir string, stop context.CancelCauseFunc) error {
	r := bufio.NewReader(in)
	head, err := r.ReadString('\n')
	if err != nil {
		return fmt.Errorf("reading the plan's length: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(head), 10, 64)
	if err != nil {
		return fmt.Errorf("reading the plan's length: %w", err)
	}
	if err := bundle.Unpack(io.LimitReader(r, n), dir); err != nil {
		return err
	}
	go func() { // ends with the process, whose input it reads
		_, _ = io.Copy(io.Discard, r)
		stop(errors.New("nobody waits for the results any more"))
	}()
	return nil
}
