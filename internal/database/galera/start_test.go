package galera

import (
	"context"
	"testing"

	"skerry/internal/database"
	"skerry/internal/host"
	"skerry/internal/load"
	"skerry/internal/testkit"
)

// startCluster starts a cluster and stops it with the test.
func startCluster(t *testing.T, nodes []host.Host, o database.Options) (*Galera, *cluster) {
	t.Helper()
	testkit.Need(t, testkit.Galera)
	g := New()
	in, err := g.Find("")
	if err != nil {
		t.Fatal(err)
	}
	c, err := g.Start(t.Context(), database.Env{Nodes: nodes, Control: nodes[0], Installation: in, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g, c.(*cluster)
}

// open opens a client that is closed with the test.
func open(t *testing.T, g *Galera, properties map[string]string) load.Client {
	t.Helper()
	c, err := g.Open(t.Context(), properties)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
