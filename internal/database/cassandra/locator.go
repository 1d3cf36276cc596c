package cassandra

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/database"
	"skerry/internal/load"
)

// nodeLocal is the level of consistency at which a member answers a read from its own
// copy alone, https://issues.apache.org/jira/browse/CASSANDRA-7168. The driver has no
// name for it, and members refuse it unless they are started with
// cassandra.enable_nodelocal_queries.
const nodeLocal = gocql.Consistency(11)

// locator tells which keys a member holds by design.
type locator struct {
	ring        []tokenRange
	centers     map[string]string // of each owner; nil where they are not told apart
	replication int               // of the cluster, or of each data centre
	member      string            // its address
}

// holds tells whether one of a key's replicas is the member's: the strategies take the
// next owners of the ring, each once, as many as there are to be in the cluster
// (SimpleStrategy) or in each data centre (NetworkTopologyStrategy; all members are in
// the same rack).
func (l *locator) holds(key string) bool {
	first, _ := slices.BinarySearchFunc(l.ring, tokenOf(key), func(s tokenRange, token int64) int { return cmp.Compare(s.to, token) })
	center, found := l.centers[l.member], 0
	var seen []string
	for i := range l.ring {
		owner := l.ring[(first+i)%len(l.ring)].owner
		if l.centers[owner] != center || slices.Contains(seen, owner) {
			continue
		}
		if owner == l.member {
			return true
		}
		seen = append(seen, owner)
		if found++; found == l.replication {
			return false
		}
	}
	return false
}

// OpenMember implements database.Replicated.
func (c *cluster) OpenMember(ctx context.Context, node string) (load.Client, error) {
	members := c.All()
	i := slices.IndexFunc(members, func(m *member) bool { return m.host.Name() == node })
	if i < 0 || !members[i].Running() {
		return nil, fmt.Errorf("opening a client of cassandra on %s: %w", node, database.ErrNotMember)
	}
	m := members[i]
	session, err := c.openSession(m, defaultKeyspace)
	if err != nil {
		return nil, err
	}
	client, err := c.newMemberClient(ctx, m, session)
	if err != nil {
		session.Close()
		return nil, fmt.Errorf("opening a client of cassandra on %s: %w", node, err)
	}
	return client, nil
}

// newMemberClient makes a client of a session with one member.
func (c *cluster) newMemberClient(ctx context.Context, m *member, session *gocql.Session) (*client, error) {
	spans, err := m.querySpans(ctx, session)
	if err != nil {
		return nil, err
	}
	l := &locator{ring: spans, replication: c.options.replication, member: m.host.Addr()}
	if c.options.strategy == strategyNetwork {
		l.centers = make(map[string]string)
		for _, o := range c.All() {
			l.centers[o.host.Addr()] = o.config.center
		}
	}
	st := &store{session: session, settings: settings{keyspace: defaultKeyspace, table: defaultTable, timeout: truncateTimeout}}
	if err := st.readColumns(ctx); err != nil {
		return nil, err
	}
	one := newClient(st, st.close)
	one.level, one.locator = nodeLocal, l
	return one, nil
}
