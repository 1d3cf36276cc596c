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
	"time"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/event/stress"
	"skerry/internal/install"
	"skerry/internal/link/tunnel"
	"skerry/internal/link/userspace"
	"skerry/internal/load"
	"skerry/internal/machine/agent"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/local"
	"skerry/internal/run/bundle"
	"skerry/internal/run/runner"
)

// newAgent returns the hidden commands of helper processes. They are separate processes because they must not share a
// scheduler or a garbage collector with the rest. The first line of input of link, wireguard and load is the configuration.
func newAgent(a *app) *cobra.Command {
	c := &cobra.Command{Use: "agent", Hidden: true, Short: "Helper processes that skerry starts"}
	for _, p := range []struct {
		use, short string
		run        func(ctx context.Context) error
	}{
		{"hold", "Hold the namespaces of a rootless lab", func(ctx context.Context) error { <-ctx.Done(); return nil }},
		{"link", "Forward the packets of emulated links", func(ctx context.Context) error { return userspace.Main(ctx, a.In, a.Out, a.Log) }},
		{"wireguard", "Forward the packets of encrypted links", func(ctx context.Context) error { return tunnel.Main(ctx, a.In, a.Out, a.Log) }},
		{"load", "Drive a database with a workload", func(ctx context.Context) error { return load.ServeAgent(ctx, a.In, a.Out, openDatabase) }},
	} {
		c.AddCommand(&cobra.Command{
			Use: p.use, Short: p.short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context()) },
		})
	}
	c.AddCommand(newAgentStress(a), newAgentTask(a), newAgentMachine(a))
	return c
}

// newAgentStress returns the programs that consume the resources of a node. Each ends when its standard input closes.
func newAgentStress(a *app) *cobra.Command {
	c := &cobra.Command{Use: "stress", Short: "Consume the resources of a node"}
	add := func(use, short string, args int, load func(args []string) (stress.Stressor, error)) {
		c.AddCommand(&cobra.Command{
			Use: use, Short: short, Args: cobra.ExactArgs(args),
			RunE: func(cmd *cobra.Command, args []string) error {
				l, err := load(args)
				if err != nil {
					return fmt.Errorf("%w: %w", cli.ErrUsage, err)
				}
				return stress.Run(cmd.Context(), a.In, a.Out, l)
			},
		})
	}
	add("cpu CORES", "Keep cores busy", 1, func(args []string) (stress.Stressor, error) {
		cores, err := strconv.ParseFloat(args[0], 64)
		return stress.CPU(cores), err
	})
	add("steal SHARE", "Steal processors at random", 1, func(args []string) (stress.Stressor, error) {
		share, err := strconv.ParseFloat(args[0], 64)
		return stress.Steal(share, uint64(time.Now().UnixNano())), err
	})
	add("memory BYTES", "Hold memory", 1, func(args []string) (stress.Stressor, error) {
		bytes, err := strconv.ParseInt(args[0], 10, 64)
		return stress.Memory(bytes), err
	})
	add("sink tcp|udp ADDRESS", "Receive and discard packets", 2, func(args []string) (stress.Stressor, error) {
		return stress.Sink(args[0], args[1]), nil
	})
	add("send tcp|udp ADDRESS:PORT BPS", "Send packets at a rate", 3, func(args []string) (stress.Stressor, error) {
		bps, err := strconv.ParseInt(args[2], 10, 64)
		return stress.Send(args[0], args[1], bps), err
	})
	return c
}

// newAgentMachine returns the process that serves this machine to another one.
func newAgentMachine(a *app) *cobra.Command {
	var look bool
	c := &cobra.Command{
		Use:   "machine",
		Short: "Serve requests for this machine on standard input until it closes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !look {
				if err := a.prepare(cmd.Context()); err != nil {
					return err
				}
			}
			exe, err := executable()
			if err != nil {
				return err
			}
			m, err := local.New(local.Config{State: a.stateDir, Exe: exe, Log: a.Log})
			if err != nil {
				return err
			}
			in, out, err := agent.Stdio()
			if err != nil {
				return err
			}
			return agent.Serve(cmd.Context(), in, out, agent.Config{Machine: m, Examine: examine, Log: a.Log})
		},
	}
	c.Flags().BoolVar(&look, "look", false, "only examine and sweep the machine; create nothing")
	return c
}

// examine reports what this machine can do.
func examine(ctx context.Context) (doctor.Report, error) {
	dir, err := install.DefaultDir()
	if err != nil {
		return doctor.Report{}, err
	}
	return doctor.Examiner{Store: install.Store{Dir: dir}, Recipes: recipes(), Data: journal.DefaultDataDir()}.Examine(ctx), nil
}

type taskFlags struct {
	only, plan, to string
	suspect, noLab bool
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
			if err := a.prepareRun(cmd.Context(), !f.noLab); err != nil {
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
	c.Flags().BoolVar(&f.noLab, "no-lab", false, "all trials drive clusters that Skerry did not start: stay in the machine's network")
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
