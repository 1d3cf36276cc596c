package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/docs"
	"skerry/internal/database/all"
	"skerry/internal/experiment"
	"skerry/internal/kernel/cgroup"
	"skerry/internal/lab"
	"skerry/internal/machine/journal"
	"skerry/internal/machine/network"
)

func newValidate(a *app) *cobra.Command {
	var sets []string
	var machines string
	var fast, plan, links, asJSON bool
	c := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check experiment files and describe what they run",
		Long: "Check experiment files without starting anything. Every mistake is reported with its line and column, the expected\n" +
			"value, and the closest valid spelling. A valid file is described: its trials in order, their duration, links,\n" +
			"routes and assertions, and the placement of nodes on several machines. Notes name workload settings without\n" +
			"effect, features that this machine lacks, such as a database, and events that outlast their trial. The exit code\n" +
			"is 2 when a file is invalid.",
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
				v.NoteDiskLimits(func() error { return cgroup.CheckDiskLimit(journal.DefaultDataDir()) })
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
				return fmt.Errorf("%w: %d of %d files invalid", cli.ErrUsage, wrong, len(files))
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&sets, "set", nil, "override a value of the experiment: `PATH=VALUE` (repeatable)")
	c.Flags().BoolVar(&fast, "fast", false, "check the smoke test that fast: in the file defines")
	c.Flags().BoolVar(&plan, "plan", false, "list all trials in the order in which they run")
	c.Flags().BoolVar(&links, "links", false, "list all links with latency, bandwidth and loss, in both directions where they differ")
	c.Flags().StringVar(&machines, "machines", "",
		"show the placement on the machines in a machines `FILE` (default: the experiment's machines)")
	_ = c.RegisterFlagCompletionFunc("set", completeSets) // fails only for an unknown flag
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [experiment|machines|summary]",
		Short: "Print the JSON Schema of experiment files, machines files or summary.json",
		Long: "Print the JSON Schema of experiment files or machines files, for completion and checks in editors, or the schema of\n" +
			"the summary.json of runs, for programs that read it. Editors with the YAML language server read the schema's name\n" +
			"from the first line of a file:\n" +
			"# yaml-language-server: $schema=experiment.schema.json",
		Example:   "  skerry schema > experiment.schema.json\n  skerry schema summary",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: []string{"experiment", "machines", "summary"},
		RunE: func(_ *cobra.Command, args []string) error {
			schema := docs.ExperimentSchema
			switch {
			case len(args) == 1 && args[0] == "machines":
				schema = docs.MachinesSchema
			case len(args) == 1 && args[0] == "summary":
				schema = docs.SummarySchema
			case len(args) == 1 && args[0] != "experiment":
				return fmt.Errorf("%w: unknown schema %q; schemas are experiment, machines and summary", cli.ErrUsage, args[0])
			}
			_, err := a.Out.Write(schema)
			return err
		},
	}
}
