package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// errNoLab is doctor's verdict on a machine that no lab can run on.
var errNoLab = errors.New("no lab can run here")

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what this machine can do",
		Long: "Tell what this machine can do, what labs will use of it, and the command that mends each lack. Everything\n" +
			"is tried in namespaces of its own that go at once. The exit code is 0 when a lab can run, else 1.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := examine(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				err = a.PrintJSON(r)
			} else {
				err = r.Write(a.Out)
			}
			if err == nil && !r.Runnable {
				err = errNoLab
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return c
}
