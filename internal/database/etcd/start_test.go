package etcd

import (
	"fmt"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/test/dbtest"
	"skerry/test/testkit"
)

// startCluster starts a cluster and stops it with the test.
func startCluster(t testing.TB, d *Etcd, nodes []host.Host, o database.Options) *cluster {
	t.Helper()
	testkit.Need(t, testkit.Installed(Recipe))
	return dbtest.Start(t, d, database.Env{Nodes: nodes, Options: o}).(*cluster)
}

func tryCluster(t testing.TB, d *Etcd, nodes []host.Host, o database.Options) (database.Cluster, error) {
	t.Helper()
	testkit.Need(t, testkit.Installed(Recipe))
	return dbtest.TryStart(t, d, database.Env{Nodes: nodes, Options: o})
}

// open opens a client that is closed with the test.
func open(t testing.TB, d *Etcd, properties map[string]string, extra ...string) *client {
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

// text writes a record's fields as "field0=a field1=b".
func text(fields []load.Field) string {
	var all []string
	for _, f := range fields {
		all = append(all, f.Name+"="+string(f.Value))
	}
	return strings.Join(all, " ")
}
