package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/atomicfile"
	"skerry/internal/base/strict"
	"skerry/internal/machine/inventory"
)

func newMachinesFromTofu(a *app) *cobra.Command {
	var asJSON bool
	var file string
	c := &cobra.Command{
		Use:   "from-tofu DIR...",
		Short: "Write a machines file from OpenTofu or Terraform outputs",
		Long: "Write a machines file for machines that OpenTofu or Terraform created in the given folders with the modules in\n" +
			"deploy/tofu (docs/howto/real-clouds.md). The command reads the output \"machines\" of \"tofu output -json\", or of\n" +
			"\"terraform output -json\" if there is no tofu. It does not create, change or contact machines. The exit code is 1\n" +
			"when the outputs have no machines, and 2 when they are invalid.",
		Example: "  tofu -chdir=lab apply\n  skerry machines from-tofu lab -o machines.yaml\n  skerry machines check machines.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := inventory.FromTofu(cmd.Context(), args)
			var ps strict.Problems
			if errors.As(err, &ps) {
				return fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			if err != nil {
				return err
			}
			write := func(w io.Writer) error {
				if asJSON {
					return cli.EncodeJSON(w, f)
				}
				return yaml.NewEncoder(w, yaml.OmitZero()).Encode(f)
			}
			if file == "" {
				return write(a.Out)
			}
			if err := atomicfile.Write(file, write); err != nil {
				return err
			}
			machines := "machines"
			if len(f.Machines) == 1 {
				machines = "machine"
			}
			_, err = fmt.Fprintf(a.Out, "%d %s in %s; check with: skerry machines check %s\n", len(f.Machines), machines, file, file)
			return err
		},
	}
	c.Flags().StringVarP(&file, "output", "o", "", "write to `FILE`, and replace an existing one (default standard output)")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, which is also valid as a machines file")
	return c
}
