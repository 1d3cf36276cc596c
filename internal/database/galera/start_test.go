package galera

import (
	"testing"

	"skerry/internal/database"
	"skerry/internal/machine/host"
	"skerry/test/dbtest"
	"skerry/test/testkit"
)

// startCluster starts a cluster for the test.
func startCluster(t *testing.T, nodes []host.Host, o database.Options) (*Galera, *cluster) {
	t.Helper()
	testkit.Need(t, testkit.Installed(Recipe))
	g := New()
	return g, dbtest.Start(t, g, database.Env{Nodes: nodes, Options: o}).(*cluster)
}
