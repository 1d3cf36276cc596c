package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/database/all"
	"skerry/internal/experiment"
	"skerry/internal/kernel/cgroup"
	"skerry/internal/lab"
	"skerry/internal/machine/network"
	"skerry/internal/machine/statedir"
)

func newValidate(a *app) *cobra.Command {
	var sets []string
	var machines string
	var fast, plan, links, asJSON bool
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check experiment files and say what they would run",
		Long: "Check experiment files without starting anything. Every mistake is told with its line and column, the value\n" +
			"that was expected, and the nearest right spelling. A valid file is described: its trials and their order, how\n" +
			"long they take, links, routes and assertions, and which nodes stand on which of several machines. Notes tell\n" +
			"which settings of a workload have no effect, what this machine lacks, such as a database, and which event outlasts\n" +
			"its trial. The exit code is 2 when a\n" +
			"file is wrong.",
		Example: `  skerry validate experiments/quickstart.yaml
  skerry validate experiments/fhc/*.yaml --fast
  skerry validate my.yaml --set repetitions=5 --plan
  skerry validate my.yaml --links
  skerry validate my.yaml --machines machines.yaml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			var results []experiment.Validation
			wrong := 0
			if machines != "" {
				set, err := onMachines(machines)
				if err != nil {
					return err
				}
				sets = append(sets, set)
			}
			for _, file := range files {
				v := experiment.Validate(file, sets, fast, all.Databases())
				v.NoteDiskLimits(func() error { return cgroup.CheckDiskLimit(statedir.DefaultDataDir()) })
				v.NoteCongestionControls(network.CongestionControls())
				v.NoteMissingDatabases(all.Databases())
				results = append(results, v)
				switch {
				case !v.Valid:
					wrong++
					if !asJSON {
						fmt.Fprintln(a.Err, v.Err())
					}
				case !asJSON:
					if err := v.Describe(a.Out, plan); err != nil {
						return err
					}
					if links {
						if err := lab.PrintPlannedLinks(a.Out, v.Links()); err != nil {
							return err
						}
					}
				}
			}
			if asJSON {
				if err := a.PrintJSON(results); err != nil {
					return err
				}
			}
			if wrong > 0 {
				return fmt.Errorf("%w: %d of %d files cannot be run as they are", cli.ErrUsage, wrong, len(files))
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&sets, "set", nil, "set a value of the experiment: `PATH=VALUE` (repeatable)")
	c.Flags().BoolVar(&fast, "fast", false, "check the smoke run that the file describes under fast:")
	c.Flags().BoolVar(&plan, "plan", false, "list every trial in the order of running")
	c.Flags().BoolVar(&links, "links", false, "list every link with its latency, bandwidth and loss, both directions where they differ")
	c.Flags().StringVar(&machines, "machines", "", "tell where nodes stand on the machines of a machines `FILE`; the experiment's machines otherwise")
	_ = c.RegisterFlagCompletionFunc("set", completeSets) // fails only where there is no such flag
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}
