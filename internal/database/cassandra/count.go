package cassandra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/sync/errgroup"

	"skerry/internal/database"
)

const (
	// countPage is how many rows a member reads at once while it counts.
	countPage = 1000
	// countAtOnce is how many ranges are counted by one member at the same time.
	countAtOnce = 4
)

// tokenRange is a part of the ring: behind from, up to and with to. The first begins at the
// least number, which is nobody's token.
type tokenRange struct {
	from, to int64
	owner    string // address of the member whose token to is
}

// Count implements database.Cluster. Each member counts the rows of the ranges that it
// owns, with all replicas of each, or where one of them is down with a majority.
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
			n, err := countSpan(gctx, s, sp, gocql.All)
			var dead *gocql.RequestErrUnavailable
			if errors.As(err, &dead) {
				n, err = countSpan(gctx, s, sp, gocql.Quorum)
			}
			total.Add(n)
			if err != nil {
				return fmt.Errorf("asking cassandra on %s: %w", m.host.Name(), err)
			}
			return nil
		})
	}
	return g.Wait()
}

func countSpan(ctx context.Context, s *gocql.Session, sp tokenRange, level gocql.Consistency) (n int64, err error) {
	statement := "SELECT COUNT(*) FROM " + quoteName(defaultTable) +
		" WHERE token(" + quoteName(keyColumn) + ") > ? AND token(" + quoteName(keyColumn) + ") <= ?"
	err = s.Query(statement, sp.from, sp.to).Consistency(level).PageSize(countPage).ScanContext(ctx, &n)
	return n, err
}

// querySpans are all of the ring, in order, as a member knows it; the session is with it.
func (m *member) querySpans(ctx context.Context, s *gocql.Session) ([]tokenRange, error) {
	owners := make(map[string][]string)
	var tokens []string
	if err := s.Query("SELECT tokens FROM system.local").ScanContext(ctx, &tokens); err != nil {
		return nil, fmt.Errorf("asking cassandra on %s: %w", m.host.Name(), err)
	}
	owners[m.host.Addr()] = tokens
	peers := s.Query("SELECT peer, tokens FROM system.peers_v2").IterContext(ctx)
	for peer := ""; peers.Scan(&peer, &tokens); {
		owners[peer] = slices.Clone(tokens)
	}
	if err := peers.Close(); err != nil {
		return nil, fmt.Errorf("asking cassandra on %s: %w", m.host.Name(), err)
	}
	return buildRing(owners)
}

// buildRing is the parts of the ring, in order, of the owners of its tokens.
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
		return nil, fmt.Errorf("%w: nobody owns a token", database.ErrNotMember)
	}
	slices.SortFunc(spans, func(a, b tokenRange) int { return cmp.Compare(a.to, b.to) })
	from := int64(math.MinInt64)
	for i := range spans {
		spans[i].from, from = from, spans[i].to
	}
	if from < math.MaxInt64 { // the end of the ring is the first one's again
		spans = append(spans, tokenRange{from: from, to: math.MaxInt64, owner: spans[0].owner})
	}
	return spans, nil
}
