// Command jarlock makes the lock of jars that a Recipe embeds: it has Maven (mvn) resolve
// coordinates with all that they need at run time, fetch the jars, and prints a line each
// with checksum and size. The first coordinates are the database's own.
//
//	go run ./internal/install/jarlock org.apache.cassandra:cassandra-all:5.0.9 > jars-5.0.lock
//
// With -pom the dependencies of a pom.xml are taken, whose first is the database's own:
// for exclusions and managed versions.
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
