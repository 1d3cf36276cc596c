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
		Short: "Write a machines file of what OpenTofu or Terraform has made",
		Long: "Write a machines file of the machines that OpenTofu or Terraform has made in folders, as the modules of\n" +
			"deploy/tofu make them (docs/howto/real-clouds.md). What \"tofu output -json\" says is read, or \"terraform\n" +
			"output -json\" where there is no tofu: its output \"machines\" holds entries of a machines file. Nothing is\n" +
			"made, changed or reached. The exit code is 1 where no machines are in the outputs, 2 where the output\n" +
			"holds something else.",
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
			if err := atomicfile.File(file, write); err != nil {
				return err
			}
			machines := "machines"
			if len(f.Machines) == 1 {
				machines = "machine"
			}
			_, err = fmt.Fprintf(a.Out, "%d %s in %s; look with: skerry machines check %s\n", len(f.Machines), machines, file, file)
			return err
		},
	}
	c.Flags().StringVarP(&file, "output", "o", "", "the `FILE` to write, in place of one that is there")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, which a machines file may be, too")
	return c
}
