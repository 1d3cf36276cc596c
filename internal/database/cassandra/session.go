package cassandra

import (
	"context"
	"fmt"
	"net"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// truncateTimeout is above Cassandra's own for TRUNCATE, 60 s, the longest there is.
const truncateTimeout = 70 * time.Second

// startupTimeout is for the first answers of a member that takes connections: it may be
// compacting, with a fraction of a core.
const startupTimeout = 30 * time.Second

// dialer is a function as gocql's interface for connecting.
type dialer database.DialFunc

func (d dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d(ctx, network, addr)
}

// openSession connects to one member, from its own node, and to no other. The caller closes it.
func (c *cluster) openSession(m *member, keyspace string) (*gocql.Session, error) {
	g := gocql.NewCluster(host.Listen(m.host))
	g.Port = c.options.nativePort
	g.Keyspace = keyspace
	g.Dialer = dialer(host.Dialer(m.host, adminTimeout))
	g.ConnectTimeout, g.Timeout = startupTimeout, truncateTimeout
	g.NumConns, g.WriteCoalesceWaitTime, g.ReconnectInterval = 1, 0, 0
	g.DisableInitialHostLookup = true
	g.Events.DisableNodeStatusEvents, g.Events.DisableTopologyEvents, g.Events.DisableSchemaEvents = true, true, true
	g.Metadata.CacheMode = gocql.Disabled
	s, err := g.CreateSession()
	if err != nil {
		return nil, fmt.Errorf("connecting to cassandra on %s: %w", m.host.Name(), err)
	}
	return s, nil
}
