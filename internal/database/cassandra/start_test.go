package cassandra

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"skerry/internal/database"
	"skerry/internal/machine/host"
	"skerry/internal/testkit"
)

// tryCluster starts a cluster of the default version.
func tryCluster(t testing.TB, nodes []host.Host, o database.Options) (*cluster, error) {
	t.Helper()
	testkit.Need(t, testkit.Installed(Recipes()[0]))
	d := New()
	in, err := d.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Start(t.Context(), database.Env{
		Nodes: nodes, Control: nodes[0], Installation: in, Options: o,
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
		Progress: func(step string) { t.Log(step) },
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c.(*cluster), nil
}

func startCluster(t testing.TB, nodes []host.Host, o database.Options) *cluster {
	t.Helper()
	c, err := tryCluster(t, nodes, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
