package metadata_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/dbtest"
	"skerry/internal/database/metadata"
	"skerry/systems/metadata/instance"
)

// TestMain lets the test's own program be a replica, as skerry's is: `metadata serve ...`.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "metadata" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
		defer stop()
		if err := serve(ctx, os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serve(ctx context.Context, args []string) error {
	o := instance.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	var group instance.Group
	var share instance.Share
	list := func(of *[]string) func(string) error {
		return func(s string) error {
			*of = append(*of, s)
			return nil
		}
	}
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	f.StringVar(&o.Listen, "listen", "", "")
	f.StringVar(&o.Dir, "data", "", "")
	f.StringVar(&group.Cluster, "cluster", "", "")
	f.StringVar(&group.Name, "name", "", "")
	f.BoolVar(&group.Join, "join", false, "")
	f.Func("member", "", list(&group.Members))
	f.StringVar(&share.Root, "root", "", "")
	f.BoolVar(&o.Security.Insecure, "insecure", false, "")
	f.Func("server", "", list(&share.Servers))
	if err := f.Parse(args); err != nil {
		return err
	}
	if len(group.Members) > 0 {
		o.Group = &group
	}
	if len(share.Servers) > 0 {
		share.Name = group.Cluster
		o.Share = &share
	}
	return instance.Run(ctx, o)
}

func TestConformance(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: metadata.About,
		Port:  8080, Survives: true, LeavesAbruptly: true, KillJoiner: time.Millisecond,
		DiskFull:   144 << 20, // a file of the log takes 72 MB, a full one 64 MB
		BadOptions: []database.Options{{"servers": "two"}, {"replicas": 4}, {"peer_port": 8090}},
	})
}
