package hydra_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/dbtest"
	"skerry/internal/database/hydra"
	member "skerry/systems/hydra"
)

// TestMain lets the test's own program be a member, as skerry's is: `hydra node --config
// FILE`.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "hydra" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
		defer stop()
		if err := run(ctx, os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func run(ctx context.Context, file string) error {
	c, err := member.LoadConfig(file)
	if err != nil {
		return err
	}
	s, err := member.Open(ctx, c, "test", slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func TestConformance(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: hydra.About,
		Port:  7070, Survives: true, LeavesAbruptly: true, DiskFull: 8 << 20, DiskOptions: database.Options{"max_log": "2MiB"},
		BadOptions: []database.Options{{"reads": "dirty"}, {"ack": "never"}, {"clouds": "region"}, {"backend": "oracle"}, {"peer_port": 7070}, {"through": "door"}, {"through": "wallet", "port": 7000}},
	})
}
