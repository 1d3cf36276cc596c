// Command matrix runs the conformance suites of the installed databases, one after the other, and prints the table
// in docs/databases.md:
//
//	go run ./internal/database/dbtest/matrix                   print it
//	go run ./internal/database/dbtest/matrix --write FILE      merge it into a page
//	go run ./internal/database/dbtest/matrix redis etcd        of these packages
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var page, from string
	var timeout time.Duration
	c := &cobra.Command{
		Use: "matrix [PACKAGE...]", SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, packages []string) error {
			dir, failed := from, error(nil)
			if dir == "" {
				var err error
				if dir, err = os.MkdirTemp("", "matrix-"); err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				failed = runSuites(cmd.Context(), cmd.ErrOrStderr(), dir, timeout, packages)
			}
			rows, err := readRows(dir)
			if err != nil {
				return errors.Join(failed, err)
			}
			text := formatTable(rows)
			if page == "" {
				_, err = fmt.Fprint(cmd.OutOrStdout(), text)
			} else {
				err = insertTable(page, text)
			}
			return errors.Join(failed, err)
		},
	}
	c.Flags().StringVar(&page, "write", "", "put the rows into the matrix of this `PAGE`")
	c.Flags().StringVar(&from, "from", "", "take the rows that SKERRY_MATRIX=`DIR` collected, and run nothing")
	c.Flags().DurationVar(&timeout, "timeout", time.Hour, "for all suites together")
	return c
}

func runSuites(ctx context.Context, out io.Writer, dir string, timeout time.Duration, packages []string) error {
	args := []string{"test", "-count=1", "-p=1", "-run=^TestConformance", "-timeout=" + timeout.String()}
	if len(packages) == 0 {
		args = append(args, "./internal/database/...")
	}
	for _, p := range packages {
		args = append(args, "./"+filepath.Join("internal/database", p))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "SKERRY_MATRIX="+dir)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running the suites: %w", err)
	}
	return nil
}
