package daemon_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/test/testkit/testhost"
)

func TestHaltAndReviveHoldTheMember(t *testing.T) {
	node := testhost.Loopback(t, 1)[0]
	c := daemon.NewCluster[*member]("demo", database.Env{})
	if err := c.RunHalt(t.Context(), node, nil); !errors.Is(err, database.ErrNotMember) || err.Error()[:8] != "halting " {
		t.Errorf("halting no member: %v", err)
	}
	m := &member{node: node.Name()}
	c.Add(m)
	held := func(ctx context.Context, got *member) error {
		if got != m {
			t.Errorf("member %v, want %v", got, m)
		}
		if err := c.RunHalt(ctx, node, nil); !errors.Is(err, database.ErrBusy) {
			t.Errorf("a second change: %v", err)
		}
		return errRefused
	}
	if err := c.RunHalt(t.Context(), node, held); !errors.Is(err, errRefused) {
		t.Errorf("halt: %v", err)
	}
	if err := c.RunRevive(t.Context(), node, held); !errors.Is(err, errRefused) || err.Error()[:9] != "reviving " {
		t.Errorf("revival: %v", err)
	}
}

// Accepted is the first time of acceptance, also of a failed change, and the moved bytes are kept.
func TestChangeTimer(t *testing.T) {
	node := testhost.Loopback(t, 1)[0]
	c := daemon.NewCluster[*member]("demo", database.Env{})
	var first time.Duration
	change, err := c.RunJoin(t.Context(), node, daemon.JoinSteps{
		Join: func(_ context.Context, timer *daemon.ChangeTimer) error {
			timer.Accept()
			first = time.Since(timer.Began())
			timer.Moved(7)
			timer.Accept()
			return errRefused
		},
	})
	if !errors.Is(err, errRefused) || change.Accepted <= 0 || change.Accepted > first || change.Complete != 0 || change.Bytes != 7 {
		t.Errorf("%+v with %v; accepted before %v", change, err, first)
	}
}
