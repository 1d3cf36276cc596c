package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"skerry/internal/link/userspace"
	"skerry/internal/machine/agent"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/local"
)

// TestMain lets tests start this program as an agent and as the emulator.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := serve(ctx, os.Args[2:])
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

func serve(ctx context.Context, args []string) error {
	log := slog.New(slog.DiscardHandler)
	switch args[0] {
	case "link":
		return userspace.Main(ctx, os.Stdin, os.Stdout, log)
	case "machine":
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		m, err := local.New(local.Config{Exe: exe})
		if err != nil {
			return err
		}
		if !slices.Contains(args, "--look") {
			if _, err := m.Sweep(ctx); err != nil {
				return err
			}
		}
		in, out, err := agent.Stdio()
		if err != nil {
			return err
		}
		return agent.Serve(ctx, in, out, agent.Config{
			Machine: m, Log: log, Examine: func(context.Context) (doctor.Report, error) { return doctor.Report{Runnable: true}, nil },
		})
	}
	return errors.New("no such agent")
}
