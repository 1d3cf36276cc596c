package userspace_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"skerry/internal/link"
	"skerry/internal/link/userspace"
	"skerry/internal/link/userspace/device"
	"skerry/test/linktest"
	"skerry/test/testkit"
)

func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{"agent", "link"}) {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := userspace.Main(ctx, os.Stdin, os.Stdout, slog.New(slog.NewTextHandler(os.Stderr, nil)))
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "owner" {
		fmt.Fprintln(os.Stderr, own(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// options start the emulator from this test binary.
func options(t *testing.T) userspace.Options {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "skerry") // t.TempDir may be too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return userspace.Options{
		Command: []string{exe, "agent", "link"},
		Socket:  filepath.Join(dir, "link.sock"), LogFile: filepath.Join(dir, "link.log"),
		ExitWithOwner: true,
	}
}

func start(t *testing.T, o userspace.Options) *userspace.Engine {
	t.Helper()
	e, err := userspace.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() }) // tests that close it check the error themselves
	return e
}

func TestContract(t *testing.T) {
	testkit.Need(t, testkit.Root)
	for _, kind := range []device.Kind{device.TUN, device.Veth} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			if kind == device.TUN {
				testkit.Need(t, testkit.TUN)
			}
			linktest.Run(t, func(t *testing.T) link.Engine {
				o := options(t)
				o.Kind = kind
				return start(t, o)
			}, linktest.Tolerances{})
		})
	}
}
