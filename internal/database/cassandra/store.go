package cassandra

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"golang.org/x/sync/errgroup"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/load"
)

type store struct {
	settings
	session *gocql.Session
	columns []string // of the table, without the key
}

// reconnectEvery is the interval between attempts to reach members that are down.
const reconnectEvery = time.Second

// newStore connects. Operations go to a replica of their key in the local data centre, without retries.
func newStore(s settings) (*store, error) {
	login, err := database.ReadLogin(s.access, s.user, s.password)
	if err != nil {
		return nil, err
	}
	g := gocql.NewCluster(strings.Split(s.hosts, ",")...)
	g.Keyspace = s.keyspace
	g.NumConns = s.connections
	g.Timeout, g.ConnectTimeout = s.timeout, s.connect
	g.WriteCoalesceWaitTime = 0 // it would add its 0.2 ms to every operation
	g.ReconnectInterval = reconnectEvery
	g.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 1, Interval: reconnectEvery}
	g.Metadata.CacheMode = gocql.KeyspaceOnly
	if login.User != "" {
		g.Authenticator = gocql.PasswordAuthenticator{Username: login.User, Password: login.Password.Reveal()}
	}
	if login.TLS != nil {
		g.SslOpts = &gocql.SslOptions{Config: login.TLS, EnableHostVerification: true}
	}
	near := gocql.RoundRobinHostPolicy()
	if s.center != "" {
		near = gocql.DCAwareRoundRobinPolicy(s.center)
	}
	g.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(near, gocql.ShuffleReplicas())
	if s.contactOnly {
		// The member behind a connection is unknown.
		g.DisableInitialHostLookup = true
		g.Events.DisableNodeStatusEvents, g.Events.DisableTopologyEvents = true, true
		g.PoolConfig.HostSelectionPolicy = gocql.RoundRobinHostPolicy()
	}
	session, err := g.CreateSession()
	if err != nil {
		return nil, advice.With(fmt.Errorf("connecting to %s: %w", s.hosts, err), "is the keyspace %s there?", s.keyspace)
	}
	st := &store{settings: s, session: session}
	if err := st.ensureColumns(); err != nil {
		session.Close()
		return nil, err
	}
	return st, nil
}

// ensureColumns reads the table's columns, and adds missing ones if the settings allow it.
func (s *store) ensureColumns() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	if err := s.readColumns(ctx); err != nil {
		return err
	}
	var missing []string
	for i := range s.fieldCount {
		if name := fmt.Sprintf("%s%d", s.fieldPrefix, i); !slices.Contains(s.columns, name) {
			missing = append(missing, quoteName(name)+" "+fieldType)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	statement := fmt.Sprintf("ALTER TABLE %s ADD (%s)", quoteName(s.table), strings.Join(missing, ", "))
	if len(s.columns) == 0 {
		statement = fmt.Sprintf("CREATE TABLE %s (%s varchar PRIMARY KEY, %s)", quoteName(s.table), quoteName(keyColumn), strings.Join(missing, ", "))
	}
	if !s.extend {
		return advice.With(fmt.Errorf("%w: keyspace %s, table %s, %d columns are missing", ErrSchema, s.keyspace, s.table, len(missing)),
			"make it with cqlsh: %s", statement)
	}
	if err := s.session.Query(statement).ExecContext(ctx); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return s.readColumns(ctx)
}

func (s *store) readColumns(ctx context.Context) error {
	s.columns = nil
	iter := s.session.Query("SELECT column_name FROM system_schema.columns WHERE keyspace_name = ? AND table_name = ?", s.keyspace, s.table).IterContext(ctx)
	for name := ""; iter.Scan(&name); {
		if name != keyColumn {
			s.columns = append(s.columns, name)
		}
	}
	if err := iter.Close(); err != nil {
		return fmt.Errorf("reading the columns of %s: %w", s.table, err)
	}
	slices.SortFunc(s.columns, func(a, b string) int { // field2 before field10
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return nil
}

func (*Cassandra) Properties() []string { return Properties() }

func (*Cassandra) ServerProperties(servers []string, _ string) map[string]string {
	return map[string]string{PropHosts: strings.Join(servers, ","), PropSchema: schemaExtend}
}

// ServerVersion implements database.External: the version of Cassandra that a server is or resembles.
func (*Cassandra) ServerVersion(ctx context.Context, server string, properties map[string]string) (version string, err error) {
	s, err := parseSettings(properties)
	if err != nil {
		return "", err
	}
	s.hosts, s.contactOnly = server, true
	st, err := openStore(ctx, s)
	if err != nil {
		return "", err
	}
	defer st.session.Close()
	err = st.session.Query("SELECT release_version FROM system.local").ScanContext(ctx, &version)
	return version, err
}

// CountTable implements database.TableManager. It counts range by range, since one query over a large table takes longer
// than a server allows.
func (*Cassandra) CountTable(ctx context.Context, properties map[string]string) (int64, error) {
	st, err := openTable(ctx, properties)
	if err != nil {
		return 0, err
	}
	defer st.session.Close()
	var total atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(countAtOnce)
	for _, r := range splitRing(externalRanges) {
		g.Go(func() error {
			n, err := countSpan(ctx, st.session, st.table, r, gocql.Quorum)
			total.Add(n)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, fmt.Errorf("count the rows of %s: %w", st.table, err)
	}
	return total.Load(), nil
}

func (*Cassandra) DropTable(ctx context.Context, properties map[string]string) error {
	st, err := openTable(ctx, properties)
	if err != nil {
		return err
	}
	defer st.session.Close()
	if err := st.session.Query("DROP TABLE IF EXISTS " + quoteName(st.table)).ExecContext(ctx); err != nil {
		return fmt.Errorf("drop table %s: %w", st.table, err)
	}
	return nil
}

// openTable connects for one question about the table that properties name.
func openTable(ctx context.Context, properties map[string]string) (*store, error) {
	if properties[propTable] == "" {
		return nil, fmt.Errorf("%w: %s is missing", ErrProperty, propTable)
	}
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	return openStore(ctx, s)
}

// externalRanges is the number of ranges in which a table is counted.
const externalRanges = 64

// splitRing returns n ranges of equal length that cover all tokens.
func splitRing(n int) []tokenRange {
	ranges := make([]tokenRange, n)
	step := uint64(math.MaxUint64) / uint64(n)
	from := int64(math.MinInt64)
	for i := range ranges {
		ranges[i].from, ranges[i].to = from, from+int64(step)
		from = ranges[i].to
	}
	ranges[n-1].to = math.MaxInt64
	return ranges
}

func (d *Cassandra) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	st, release, err := d.stores.Acquire(ctx, s, database.ClientSource[*store]{
		Open:  func(ctx context.Context) (*store, error) { return openStore(ctx, s) },
		Close: (*store).close,
	})
	if err != nil {
		return nil, fmt.Errorf("opening a client of cassandra: %w", err)
	}
	return newClient(st, release), nil
}

// openStore is newStore bounded by ctx. The driver connects without a context; a late store is closed.
func openStore(ctx context.Context, s settings) (*store, error) {
	type result struct {
		*store
		err error
	}
	done := make(chan result, 1)
	go func() { // ends with the driver's own timeouts
		st, err := newStore(s)
		done <- result{st, err}
	}()
	select {
	case r := <-done:
		return r.store, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.close()
			}
		}()
		return nil, ctx.Err()
	}
}

func (s *store) close() error {
	s.session.Close()
	return nil
}

// errTable marks the use of a table that the client was not opened for.
var errTable = errors.New("the client was opened for another table")
