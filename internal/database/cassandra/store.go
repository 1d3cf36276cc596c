package cassandra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/base/advice"
	"skerry/internal/load"
)

// store is what clients share: the driver's session, with its connections to every
// member and its knowledge of the ring, and the table's columns.
type store struct {
	settings
	session *gocql.Session
	columns []string // of the table, without the key
}

// shared is a store in use.
type shared struct {
	users int
	ready chan struct{} // closed when store or err is set
	*store
	err error
}

// reconnectEvery is how often members that are down are tried, besides those that the
// others report to be back.
const reconnectEvery = time.Second

// newStore connects. Operations go to a replica of their key, in the local data centre
// where there is one, and are never tried again.
func newStore(s settings) (*store, error) {
	g := gocql.NewCluster(strings.Split(s.hosts, ",")...)
	g.Keyspace = s.keyspace
	g.NumConns = s.connections
	g.Timeout, g.ConnectTimeout = s.timeout, s.connect
	g.WriteCoalesceWaitTime = 0 // it would add its 0.2 ms to every operation
	g.ReconnectInterval = reconnectEvery
	g.ReconnectionPolicy = &gocql.ConstantReconnectionPolicy{MaxRetries: 1, Interval: reconnectEvery}
	g.Metadata.CacheMode = gocql.KeyspaceOnly
	if s.user != "" {
		g.Authenticator = gocql.PasswordAuthenticator{Username: s.user, Password: s.password}
	}
	near := gocql.RoundRobinHostPolicy()
	if s.center != "" {
		near = gocql.DCAwareRoundRobinPolicy(s.center)
	}
	g.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(near, gocql.ShuffleReplicas())
	if s.contactOnly {
		// Which member is behind a connection nobody knows.
		g.DisableInitialHostLookup = true
		g.Events.DisableNodeStatusEvents, g.Events.DisableTopologyEvents = true, true
		g.PoolConfig.HostSelectionPolicy = gocql.RoundRobinHostPolicy()
	}
	session, err := g.CreateSession()
	if err != nil {
		return nil, advice.With(fmt.Errorf("connecting to %s: %w", s.hosts, err), "is the keyspace %s there?", s.keyspace)
	}
	st := &store{settings: s, session: session}
	if err := st.learn(); err != nil {
		session.Close()
		return nil, err
	}
	return st, nil
}

// learn reads which columns the table has, and adds those that it lacks where it may.
func (s *store) learn() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	if err := s.readColumns(ctx); err != nil {
		return err
	}
	var missing []string
	for i := range s.fieldCount {
		if name := fmt.Sprintf("%s%d", s.fieldPrefix, i); !slices.Contains(s.columns, name) {
			missing = append(missing, quote(name)+" "+fieldType)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	statement := fmt.Sprintf("ALTER TABLE %s ADD (%s)", quote(s.table), strings.Join(missing, ", "))
	if len(s.columns) == 0 {
		statement = fmt.Sprintf("CREATE TABLE %s (%s varchar PRIMARY KEY, %s)", quote(s.table), quote(keyColumn), strings.Join(missing, ", "))
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

// Properties implements database.Configurable.
func (*Cassandra) Properties() []string { return Properties() }

// Open implements database.Database. The properties are listed by Properties.
func (d *Cassandra) Open(ctx context.Context, properties map[string]string) (load.Client, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	sh := d.sessions[s]
	if sh == nil {
		sh = &shared{ready: make(chan struct{})}
		d.sessions[s] = sh
		go func() { // ends with the driver's own timeouts; Open waits for it
			sh.store, sh.err = newStore(s)
			close(sh.ready)
		}()
	}
	sh.users++
	d.mu.Unlock()
	select {
	case <-sh.ready:
	case <-ctx.Done():
		d.abandon(s, sh)
		return nil, fmt.Errorf("opening a client of cassandra: %w", ctx.Err())
	}
	if sh.err != nil {
		d.release(s, sh)
		return nil, fmt.Errorf("opening a client of cassandra: %w", sh.err)
	}
	return newClient(sh.store, func() { d.release(s, sh) }), nil
}

// abandon gives up a session that is not there yet.
func (d *Cassandra) abandon(s settings, sh *shared) {
	go func() {
		<-sh.ready
		d.release(s, sh)
	}()
}

// release gives a session back; the last user closes it. One that failed is not given to
// anybody else.
func (d *Cassandra) release(s settings, sh *shared) {
	d.mu.Lock()
	sh.users--
	last := sh.users == 0
	if (last || sh.err != nil) && d.sessions[s] == sh {
		delete(d.sessions, s)
	}
	d.mu.Unlock()
	if last && sh.store != nil {
		sh.session.Close()
	}
}

// errTable says that a workload uses a table that its client was not opened for.
var errTable = errors.New("the client was opened for another table")
