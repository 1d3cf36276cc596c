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

// newAgentTask returns the command that runs trials of a packed plan and delivers the results.
func newAgentTask(a *app) *cobra.Command {
	var f taskFlags
	c := &cobra.Command{
		Use:   "task",
		Short: "Run trials of a plan and print their results, for skerry run --on",
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
	c.Flags().StringVar(&f.only, "only", "", "trials to run, as for skerry run")
	c.Flags().StringVar(&f.plan, "plan", "",
		"packed plan `FILE` (default: standard input, preceded by its length; the task ends when the input closes)")
	c.Flags().StringVar(&f.to, "to", "", "write the results to `FILE`, a link, or the link stored in @FILE (default standard output)")
	c.Flags().BoolVar(&f.suspect, "suspect", false, "also run trials with a suspect result")
	return c
}

func (a *app) task(ctx context.Context, f taskFlags, only []int) (err error) {
	dir, err := os.MkdirTemp("", "skerry-task-")
	if err != nil {
		return fmt.Errorf("create task directory: %w", err)
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
	c := runner.Config{
		StateDir: a.stateDir, Suspect: f.suspect, Version: version, Command: os.Args, Progress: a.Progress(), Log: a.Log,
	}
	c, err = a.configOf(c, source)
	if err != nil {
		return err
	}
	// Results measured before an error are delivered, too.
	failed := runner.Work(ctx, dir, c, only)
	return errors.Join(failed, a.deliver(ctx, f.to, func(w io.Writer) error { return bundle.WriteResults(w, dir, only) }))
}

// deliver writes results to the target of --to, or to standard output for "".
func (a *app) deliver(ctx context.Context, to string, send func(io.Writer) error) error {
	if to == "" {
		return send(a.Out)
	}
	if file, is := strings.CutPrefix(to, "@"); is {
		link, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read result link: %w", err)
		}
		to = strings.TrimSpace(string(link))
	}
	return bundle.DeliverResults(ctx, to, send)
}

func unpackFile(plan, dir string) error {
	f, err := os.Open(plan)
	if err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	defer f.Close()
	return bundle.Unpack(f, dir)
}

// unpackInput reads the plan, and calls stop when the input closes afterwards: the submitting process is gone then.
func unpackInput(in io.Reader, dir string, stop context.CancelCauseFunc) error {
	r := bufio.NewReader(in)
	head, err := r.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read plan length: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(head), 10, 64)
	if err != nil {
		return fmt.Errorf("read plan length: %w", err)
	}
	if err := bundle.Unpack(io.LimitReader(r, n), dir); err != nil {
		return err
	}
	go func() { // ends with the process, whose input it reads
		_, _ = io.Copy(io.Discard, r)
		stop(errors.New("the submitting process closed the connection"))
	}()
	return nil
}
