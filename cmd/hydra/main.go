// Command hydra runs and administers Hydra, a data layer over the SQL databases of several clouds.
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
	root := cli.NewRoot(a, "hydra", "A data layer over several clouds' SQL databases", version)
	root.Long = "Hydra stores the rows of tables in ordinary SQL databases, one per cloud, behind one consistent HTTP API. The API\n" +
		"survives the loss of a node, a database or a cloud. `hydra dev` starts a complete deployment on this machine."
	root.AddCommand(newInit(a), newNode(a), newLB(a), newDNS(a), newWallet(a), newDev(a), newUp(a), newStatus(a), newBackup(a),
		newRestore(a), newAdopt(a),
		cli.NewVersion(a, "hydra", version), cli.NewPages(a), cli.NewMan())
	cli.Complete(root)
	return root
}
