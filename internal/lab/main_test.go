package lab

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"skerry/internal/link/tunnel"
	"skerry/internal/link/userspace"
)

// TestMain lets tests start this program as the agents of a lab, and as the owner of a lab that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := agent(ctx, os.Args[2])
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Under the race detector, every agent would sleep for a second before it exits.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func agent(ctx context.Context, name string) error {
	switch name {
	case "link":
		return userspace.Main(ctx, os.Stdin, os.Stdout, slog.New(slog.DiscardHandler))
	case "wireguard":
		return tunnel.Main(ctx, os.Stdin, os.Stdout, slog.New(slog.DiscardHandler))
	case "owner":
		return owner(ctx)
	case "nested":
		return nested(ctx)
	case "hold":
		<-ctx.Done()
		return nil
	}
	return fmt.Errorf("no agent %s", name)
}
