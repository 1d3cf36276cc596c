package etcd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/host"
	"skerry/internal/load"
	"skerry/internal/testkit"
)

// startCluster starts a cluster and stops it with the test.
func startCluster(t testing.TB, d *Etcd, nodes []host.Host, o database.Options) *cluster {
	t.Helper()
	c, err := tryCluster(t, d, nodes, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c.(*cluster)
}

func tryCluster(t testing.TB, d *Etcd, nodes []host.Host, o database.Options) (database.Cluster, error) {
	t.Helper()
	testkit.Need(t, testkit.Etcd)
	in, err := d.Find("")
	if err != nil {
		t.Fatal(err)
	}
	return d.Start(t.Context(), database.Env{
		Nodes: nodes, Control: nodes[0], Installation: in, Options: o,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Progress: func(string) {},
	})
}

// open opens a client that is closed with the test.
func open(t testing.TB, d *Etcd, properties map[string]string, extra ...string) *client {
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
	return c.(*client)
}

func record(values ...string) []load.Field {
	var f []load.Field
	for i, v := range values {
		f = append(f, load.Field{Name: fmt.Sprintf("field%d", i), Value: []byte(v)})
	}
	return f
}

// text writes a record's fields as "field0=a field1=b".
func text(fields []load.Field) string {
	var all []string
	for _, f := range fields {
		all = append(all, f.Name+"="+string(f.Value))
	}
	return strings.Join(all, " ")
}
