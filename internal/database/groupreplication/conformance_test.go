package groupreplication

import (
	"context"
	"net"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/machine/host"
	"skerry/test/dbtest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// at is a database whose clients connect from a node that is set later.
func at(client *host.Host) *GroupReplication {
	s := New()
	s.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (*client).Dial(ctx, network, addr)
	}
	return s
}

// The nodes have network namespaces, because MySQL's group channel listens on all addresses.
func TestConformance(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.Installed(Recipe))
	var client host.Host
	dbtest.Run(t, dbtest.Config{
		About: About,
		New:   func() database.Database { return at(&client) }, Port: mysql.Port,
		Hosts: func(t testing.TB, n int) []host.Host {
			hosts := testhost.Bridged(t, n)
			client = hosts[n-1]
			return hosts
		},
		Options: database.Options{"group_replication_member_expel_timeout": 0},
		BadOptions: []database.Options{
			{"group_replication_consistency": "STRONG"}, {"port": groupPort}, {"group_replication_member_expel_timeout": "1500ms"},
			{"group_replication_message_cache_size": "1MiB"},
		},
		Survives: true, LeavesAbruptly: true, DiskFull: 384 << 20,
	})
}
