package main

import (
	"context"

	"github.com/spf13/cobra"

	"skerry/internal/install"
	"skerry/internal/machine/agent"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/local"
)

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
