package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/docs"
)

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
