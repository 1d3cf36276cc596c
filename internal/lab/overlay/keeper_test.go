package overlay_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/lab/overlay"
	"skerry/internal/machine/host"
	"skerry/test/testkit/testhost"
)

// A daemon that fails at start is restarted repeatedly, and its last log lines are kept.
func TestFailingDaemonIsRestarted(t *testing.T) {
	h := testhost.Loopback(t, 1)[0]
	k := overlay.NewSupervisor(nil)
	err := k.Start(t.Context(), h, host.Command{
		Name: "router", Path: "/bin/sh", Args: []string{"-c", "echo no such interface; exit 1"}, Log: filepath.Join(h.Dir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = overlay.WaitUntil(ctx, func(context.Context) error {
		if k.Restarts() < 2 {
			return errors.New("not restarted twice")
		}
		return nil
	})
	if err = errors.Join(err, k.Close()); err != nil {
		t.Fatal(err)
	}
	if got := k.LastLog(); !strings.Contains(got, "router on n1 ended") || !strings.Contains(got, "no such interface") {
		t.Errorf("last log lines %q", got)
	}
}
