package cassandra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
	"skerry/internal/machine/host"
)

// fieldType is the type of field columns. The varchar of YCSB's documentation accepts only valid UTF-8.
const fieldType = "blob"

// createTable creates the keyspace and the table. Clients add columns for workloads with more fields.
func (c *cluster) createTable(ctx context.Context) error {
	s, err := c.openSession(c.All()[0], "")
	if err != nil {
		return fmt.Errorf("creating the table: %w", err)
	}
	defer s.Close()
	columns := []string{quoteName(keyColumn) + " varchar PRIMARY KEY"}
	for i := range defaultFields {
		columns = append(columns, quoteName(fmt.Sprintf("field%d", i))+" "+fieldType)
	}
	for _, statement := range []string{
		fmt.Sprintf("CREATE KEYSPACE %s WITH replication = %s", quoteName(defaultKeyspace), c.replicationCQL()),
		fmt.Sprintf("CREATE TABLE %s.%s (%s)", quoteName(defaultKeyspace), quoteName(defaultTable), strings.Join(columns, ", ")),
	} {
		if err := s.Query(statement).ExecContext(ctx); err != nil {
			return fmt.Errorf("creating the table: %s: %w", statement, err)
		}
	}
	return nil
}

const keyColumn = "y_id"

func (c *cluster) replicationCQL() string {
	if c.options.strategy == strategySimple {
		return fmt.Sprintf("{'class': 'SimpleStrategy', 'replication_factor': %d}", c.options.replication)
	}
	parts := []string{"'class': 'NetworkTopologyStrategy'"}
	for _, dc := range c.centers {
		parts = append(parts, fmt.Sprintf("'%s': %d", strings.ReplaceAll(dc, "'", "''"), c.options.replication))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Clear implements database.Cluster. Every member must be up, because a member that is down would bring rows back.
func (c *cluster) Clear(ctx context.Context) error {
	m, err := c.runningMember()
	if err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	s, err := c.openSession(m, defaultKeyspace)
	if err != nil {
		return fmt.Errorf("clearing the table: %w", err)
	}
	defer s.Close()
	if err := s.Query("TRUNCATE " + quoteName(defaultTable)).ExecContext(ctx); err != nil {
		var dead *gocql.RequestErrUnavailable
		if errors.As(err, &dead) {
			err = fmt.Errorf("every member must be up: %w", err)
		}
		return fmt.Errorf("clearing the table: %w", err)
	}
	return nil
}

func (c *cluster) runningMember() (*member, error) {
	for _, m := range c.All() {
		if m.Running() {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%w: no member runs", database.ErrNotMember)
}

const (
	// countPage is the page size of a member that counts rows.
	countPage = 1000
	// countAtOnce is the number of ranges that one member counts at the same time.
	countAtOnce = 4
)

// tokenRange is the part (from, to] of the ring. The first range starts at the smallest number.
type tokenRange struct {
	from, to int64
	owner    string // address of the member whose token to is
}

// Count implements database.Cluster. Each member counts its own ranges at ALL, or QUORUM if a member is down.
func (c *cluster) Count(ctx context.Context) (int64, error) {
	m, err := c.runningMember()
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	s, err := c.openSession(m, "")
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	spans, err := m.querySpans(ctx, s)
	s.Close()
	if err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	shares := make(map[*member][]tokenRange)
	for _, s := range spans {
		by := m
		for _, o := range c.All() {
			if o.Running() && o.host.Addr() == s.owner {
				by = o
			}
		}
		shares[by] = append(shares[by], s)
	}
	var total atomic.Int64
	g, gctx := errgroup.WithContext(ctx)
	for by, share := range shares {
		g.Go(func() error { return c.countSpans(gctx, by, share, &total) })
	}
	if err := g.Wait(); err != nil {
		return 0, fmt.Errorf("counting rows: %w", err)
	}
	return total.Load(), nil
}

func (c *cluster) countSpans(ctx context.Context, m *member, share []tokenRange, total *atomic.Int64) error {
	s, err := c.openSession(m, defaultKeyspace)
	if err != nil {
		return err
	}
	defer s.Close()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(countAtOnce)
	for _, sp := range share {
		g.Go(func() error {
			n, err := countSpan(gctx, s, defaultTable, sp, gocql.All)
			var dead *gocql.RequestErrUnavailable
			if errors.As(err, &dead) {
				n, err = countSpan(gctx, s, defaultTable, sp, gocql.Quorum)
			}
			total.Add(n)
			if err != nil {
				return fmt.Errorf("querying cassandra on %s: %w", m.host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}

func countSpan(ctx context.Context, s *gocql.Session, table string, sp tokenRange, level gocql.Consistency) (n int64, err error) {
	statement := "SELECT COUNT(*) FROM " + quoteName(table) +
		" WHERE token(" + quoteName(keyColumn) + ") > ? AND token(" + quoteName(keyColumn) + ") <= ?"
	err = s.Query(statement, sp.from, sp.to).Consistency(level).PageSize(countPage).ScanContext(ctx, &n)
	return n, err
}

// querySpans returns the ranges of the ring, in order, from the session's member.
func (m *member) querySpans(ctx context.Context, s *gocql.Session) ([]tokenRange, error) {
	owners := make(map[string][]string)
	var tokens []string
	if err := s.Query("SELECT tokens FROM system.local").ScanContext(ctx, &tokens); err != nil {
		return nil, fmt.Errorf("querying cassandra on %s: %w", m.host.Name(), err)
	}
	owners[m.host.Addr()] = tokens
	peers := s.Query("SELECT peer, tokens FROM system.peers_v2").IterContext(ctx)
	for peer := ""; peers.Scan(&peer, &tokens); {
		owners[peer] = slices.Clone(tokens)
	}
	if err := peers.Close(); err != nil {
		return nil, fmt.Errorf("querying cassandra on %s: %w", m.host.Name(), err)
	}
	return buildRing(owners)
}

func buildRing(owners map[string][]string) ([]tokenRange, error) {
	var spans []tokenRange
	for owner, tokens := range owners {
		for _, t := range tokens {
			n, err := strconv.ParseInt(t, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("the token %q of %s: %w", t, owner, err)
			}
			spans = append(spans, tokenRange{to: n, owner: owner})
		}
	}
	if len(spans) == 0 {
		return nil, fmt.Errorf("%w: no member owns a token", database.ErrNotMember)
	}
	slices.SortFunc(spans, func(a, b tokenRange) int { return cmp.Compare(a.to, b.to) })
	from := int64(math.MinInt64)
	for i := range spans {
		spans[i].from, from = from, spans[i].to
	}
	if from < math.MaxInt64 { // the range after the last token belongs to the owner of the first range
		spans = append(spans, tokenRange{from: from, to: math.MaxInt64, owner: spans[0].owner})
	}
	return spans, nil
}

// truncateTimeout exceeds Cassandra's timeout for TRUNCATE, 60 s, the longest of its timeouts.
const truncateTimeout = 70 * time.Second

// startupTimeout bounds the first answers of a started member, which may be compacting.
const startupTimeout = 30 * time.Second

// dialer adapts a function to gocql's Dialer interface.
type dialer database.DialFunc

func (d dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return d(ctx, network, addr)
}

// openSession connects only to one member, from its node. The caller closes the session.
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
