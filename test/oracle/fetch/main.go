// Command fetch installs the YCSB that the tests of test/oracle run, into the cache of skerry install. It prints
// nothing when YCSB is there.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"skerry/internal/install"
	"skerry/test/oracle"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := fetch(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/oracle:", err)
		os.Exit(1)
	}
}

func fetch(ctx context.Context) error {
	dir, err := install.DefaultDir()
	if err != nil {
		return err
	}
	s := install.Store{Dir: dir}
	if _, err := s.Find(ctx, oracle.Recipe, ""); err == nil {
		return nil
	}
	s.Progress = func(text string) { fmt.Fprintln(os.Stderr, text) }
	_, err = s.Install(ctx, oracle.Recipe)
	return err
}
