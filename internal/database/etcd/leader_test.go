package etcd

import (
	"errors"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/testkit/loophost"
)

// TestLeader: whoever wins the elections, the member that was asked for leads, also a cluster
// that is emptied for another trial.
func TestLeader(t *testing.T) {
	nodes := loophost.New(t, 3)
	c := startCluster(t, New(), nodes, database.Options{"leader": "n3"})
	if got := leaderOf(t, c).host.Name(); got != "n3" {
		t.Errorf("%s leads the new cluster", got)
	}
	ctx := t.Context()
	other, err := c.findServing(ctx, c.On("n3"))
	if err != nil {
		t.Fatal(err)
	}
	if err := moveLeader(ctx, c.On("n3"), other); err != nil {
		t.Fatal(err)
	}
	if err := c.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if got := leaderOf(t, c).host.Name(); got != "n3" {
		t.Errorf("%s leads the emptied cluster", got)
	}
	if _, err := New().Start(ctx, database.Env{Nodes: nodes, Options: database.Options{"leader": "n9"}}); !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), "n1, n2, n3") {
		t.Errorf("a leader that is no node: %v", err)
	}
}

func leaderOf(t *testing.T, c *cluster) *member {
	t.Helper()
	m, err := c.findServing(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
