package redis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/test/dbtest"
	"skerry/test/testkit"
)

// writeBeforeReply lets servers write before each reply, for tests that kill them without losses. With everysec, they
// reply first while an fsync is running: see Halt.
var writeBeforeReply = database.Options{"appendfsync": "no"}

// startCluster starts a cluster for the test.
func startCluster(t *testing.T, d *Redis, nodes []host.Host, o database.Options) *cluster {
	t.Helper()
	testkit.Need(t, testkit.Installed(Recipe))
	return dbtest.Start(t, d, database.Env{Nodes: nodes, Options: o}).(*cluster)
}

func tryCluster(t *testing.T, d *Redis, nodes []host.Host, o database.Options) (database.Cluster, error) {
	t.Helper()
	testkit.Need(t, testkit.Installed(Recipe))
	return dbtest.TryStart(t, d, database.Env{Nodes: nodes, Options: o})
}

// open opens a client for the test.
func open(t *testing.T, d *Redis, properties map[string]string, extra ...string) *client {
	t.Helper()
	return dbtest.Open(t, d, properties, extra...).(*client)
}

func record(values ...string) []load.Field {
	var f []load.Field
	for i, v := range values {
		f = append(f, load.Field{Name: fmt.Sprintf("field%d", i), Value: []byte(v)})
	}
	return f
}

// running reports whether any redis-server of a node exists.
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
