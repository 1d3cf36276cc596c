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
		Short: "Print the JSON Schema of experiment files, of machines files, or of summary.json",
		Long: "Print the JSON Schema of experiment files, or of machines files, with which editors complete and check as you type;\n" +
			"or that of the summary.json of runs, for programs that read it.\n" +
			"Editors with the YAML language server take it from the first line of a file:\n" +
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
				return fmt.Errorf("%w: no files of a kind %q; there are experiment, machines and summary", cli.ErrUsage, args[0])
			}
			_, err := a.Out.Write(schema)
			return err
		},
	}
}
