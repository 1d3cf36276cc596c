package trial

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"skerry/internal/database/redis"
	"skerry/internal/link/userspace"
	"skerry/internal/load"
)

// TestMain lets trials of the tests start this program as their emulator and their driver.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "agent" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := fmt.Errorf("no such agent: %s", os.Args[2])
	switch os.Args[2] {
	case "link":
		err = userspace.Main(ctx, os.Stdin, os.Stdout, slog.New(slog.DiscardHandler))
	case "load":
		err = load.ServeAgent(ctx, os.Stdin, os.Stdout, func(string) (func(context.Context, map[string]string) (load.Client, error), error) {
			return redis.New().Open, nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
