package main

import (
	"github.com/spf13/cobra"

	"skerry/docs"
)

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of experiment files",
		Long: "Print the JSON Schema of experiment files, with which editors complete and check as you type.\n" +
			"Editors with the YAML language server take it from the first line of a file:\n" +
			"# yaml-language-server: $schema=experiment.schema.json",
		Example: "  skerry schema > experiment.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(docs.ExperimentSchema)
			return err
		},
	}
}
