// Command metad runs, mounts and administers the metadata service, a directory tree over HTTP.
package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
)

// version identifies the source of the build; the Makefile sets it.
var version = "unknown"

func main() { os.Exit(cli.Main(run)) }

func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	a := cli.New(in, out, errw)
	return a.Execute(ctx, newRoot(a), args, nil)
}

func newRoot(a *cli.App) *cobra.Command {
	root := cli.NewRoot(a, "metad", "The metadata service: a directory tree over HTTP", version)
	root.Long = "The metadata service: a durable tree of directories and small files, served over HTTP. docs/metadata.md\n" +
		"describes the service and its protocol."
	root.AddCommand(newServe(a), newStatus(a), newMember(a), newSettle(a), newMount(a),
		cli.NewVersion(a, "metad", version), cli.NewPages(a), cli.NewMan())
	cli.Complete(root)
	return root
}
