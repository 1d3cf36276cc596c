package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Tell which version this is",
		Long: "Tell which version this is, which Go compiled it, and for which system. A version with a plus sign is\n" +
			"built from a commit that is not a release: 0.1.0+g1f20c3a comes after 0.1.0.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := about{Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
			if asJSON {
				return printJSON(a, v)
			}
			_, err := fmt.Fprintf(a.out, "skerry %s (%s, %s)\n", v.Version, v.Go, v.System)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

// about is what the program says of itself.
type about struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
}
