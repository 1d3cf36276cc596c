package main

import "github.com/spf13/cobra"

// newMetadata groups what serves and uses a directory tree.
func newMetadata(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "metadata",
		Short: "The metadata service: a directory tree over HTTP",
		Long: "The metadata service: one tree of directories and small files, kept durably and served over HTTP. It is a\n" +
			"system of its own; docs/metadata.md has its protocol.",
	}
	c.AddCommand(newMetadataServe(a), newMetadataStatus(a), newMetadataMember(a), newMetadataSettle(a), newMetadataMount(a))
	return c
}
