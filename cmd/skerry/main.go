// Command skerry is a laboratory for distributed databases on fragmented clouds.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(execute()) }

// execute runs this process's command line and returns its exit code.
func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first one ends what is being done with all that it made; who cannot wait for that
	// presses Ctrl-C again. A second SIGTERM changes nothing: rootless commands send one to
	// their children, which got the terminal's Ctrl-C already.
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
