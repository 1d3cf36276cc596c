// Command jarlock makes the lock of jars that a Recipe embeds. Maven (mvn) resolves coordinates with their run-time
// dependencies and downloads the jars; jarlock prints a line for each with checksum and size. The first coordinates are the
// database's own.
//
//	go run ./internal/install/jarlock org.apache.cassandra:cassandra-all:5.0.9 > jars-5.0.lock
//
// -pom reads the dependencies from a pom.xml, for exclusions and managed versions. The first is the database's own.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jarlock:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var pom string
	c := &cobra.Command{
		Use: "jarlock GROUP:ARTIFACT:VERSION... | --pom FILE GROUP:ARTIFACT", Args: cobra.MinimumNArgs(1),
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			jars, err := resolve(cmd.Context(), pom, args)
			if err != nil {
				return err
			}
			return write(cmd.OutOrStdout(), args, jars)
		},
	}
	c.Flags().StringVar(&pom, "pom", "", "take the dependencies of this pom.xml")
	return c
}
