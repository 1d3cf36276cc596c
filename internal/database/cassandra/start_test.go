package cassandra

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"testing"

	"skerry/internal/database"
	"skerry/internal/host"
	"skerry/internal/load"
	"skerry/internal/testkit"
)

// tryCluster starts a cluster of the default version.
func tryCluster(t testing.TB, nodes []host.Host, o database.Options) (*cluster, error) {
	t.Helper()
	testkit.Need(t, testkit.Cassandra)
	d := New()
	in, err := d.Find("")
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

// open opens a client that is closed with the test.
func open(t testing.TB, d *Cassandra, properties map[string]string, extra ...string) load.Client {
	t.Helper()
	p := maps.Clone(properties)
	for i := 0; i < len(extra); i += 2 {
		p[extra[i]] = extra[i+1]
	}
	c, err := d.Open(t.Context(), p)
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
