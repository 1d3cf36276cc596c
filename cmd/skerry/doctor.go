package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// errNoLab is returned by doctor on a machine that cannot run labs.
var errNoLab = errors.New("this machine cannot run labs")

func newDoctor(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine",
		Long: "Check what this machine can do and which of its features labs will use. For each missing feature, print the\n" +
			"command that adds it. All checks run in temporary namespaces. The exit code is 0 when a lab can run, else 1.",
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
