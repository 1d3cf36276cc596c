package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"skerry/internal/cgroup"
	"skerry/internal/database/all"
	"skerry/internal/experiment"
	"skerry/internal/lab"
)

func newValidate(a *app) *cobra.Command {
	var sets []string
	var fast, plan, asJSON bool
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check experiment files and say what they would run",
		Long: "Check experiment files without starting anything: every mistake is told with its line and column, what\n" +
			"was expected and the nearest right spelling. A valid file is described: its trials, in what order they\n" +
			"run, and how long that takes. The exit code is 2 when a file is wrong.",
		Example: `  skerry validate experiments/quickstart.yaml
  skerry validate experiments/fhc/*.yaml --fast
  skerry validate my.yaml --set repetitions=5 --plan`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			var results []experiment.Validation
			wrong := 0
			for _, file := range files {
				v := experiment.Validate(file, sets, fast, all.Databases())
				v.Examine(func() error { return cgroup.BoundsDisk(lab.DefaultDataDir()) })
				results = append(results, v)
				switch {
				case !v.Valid:
					wrong++
					if !asJSON {
						fmt.Fprintln(a.err, v.Err())
					}
				case !asJSON:
					if err := v.Describe(a.out, plan); err != nil {
						return err
					}
				}
			}
			if asJSON {
				if err := printJSON(a, results); err != nil {
					return err
				}
			}
			if wrong > 0 {
				return fmt.Errorf("%w: %d of %d files cannot be run as they are", errUsage, wrong, len(files))
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&sets, "set", nil, "set a value of the experiment: `PATH=VALUE` (repeatable)")
	c.Flags().BoolVar(&fast, "fast", false, "check the smoke run that the file describes under fast:")
	c.Flags().BoolVar(&plan, "plan", false, "list every trial in the order of running")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}
