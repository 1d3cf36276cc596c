// Command skerry is a laboratory for distributed databases on fragmented clouds.
package main

import (
	"os"

	"skerry/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(run)) }
