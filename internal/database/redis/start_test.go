package redis

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/host"
	"skerry/internal/load"
	"skerry/internal/testkit"
)

// startCluster starts a cluster and stops it with the test.
func startCluster(t *testing.T, d *Redis, nodes []host.Host, o database.Options) *cluster {
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

func tryCluster(t *testing.T, d *Redis, nodes []host.Host, o database.Options) (database.Cluster, error) {
	t.Helper()
	testkit.Need(t, testkit.Redis)
	in, err := d.Find("")
	if err != nil {
		t.Fatal(err)
	}
	return d.Start(t.Context(), database.Env{
		Nodes: nodes, Control: nodes[0], Installation: in, Options: o,
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
		Progress: func(string) {},
	})
}

// open opens a client that is closed with the test.
func open(t *testing.T, d *Redis, properties map[string]string, extra ...string) *client {
	t.Helper()
	p := make(map[string]string)
	for k, v := range properties {
		p[k] = v
	}
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

// running tells whether any redis-server of a node is left.
func running(h host.Host) bool {
	pids, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range pids {
		line, _ := os.ReadFile(p)
		if strings.Contains(string(line), h.Addr()+":") && strings.Contains(string(line), "redis-server") {
			return true
		}
	}
	return false
}
