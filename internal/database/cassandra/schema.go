package cassandra

import (
	"context"
	"errors"
	"fmt"
	"strings"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/database"
)

// fieldType is that of the columns of fields: any bytes. YCSB's documentation has varchar,
// which takes valid UTF-8 alone; the client works with both.
const fieldType = "blob"

// createTable makes the keyspace and the benchmark's table; a workload with more fields
// adds columns when its client opens.
func (c *cluster) createTable(ctx context.Context) error {
	s, err := c.openSession(c.All()[0], "")
	if err != nil {
		return fmt.Errorf("making the table: %w", err)
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
			return fmt.Errorf("making the table: %s: %w", statement, err)
		}
	}
	return nil
}

// keyColumn is the column of the key, as YCSB's binding calls it.
const keyColumn = "y_id"

// replicationCQL is the keyspace's strategy in CQL.
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

// quoteName makes a name of CQL that is taken as it is.
func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Clear implements database.Cluster. Every member must be up: those that are not would
// bring rows back.
func (c *cluster) Clear(ctx context.Context) error {
	m, err := c.runningMember()
	if err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	s, err := c.openSession(m, defaultKeyspace)
	if err != nil {
		return fmt.Errorf("emptying the table: %w", err)
	}
	defer s.Close()
	if err := s.Query("TRUNCATE " + quoteName(defaultTable)).ExecContext(ctx); err != nil {
		var dead *gocql.RequestErrUnavailable
		if errors.As(err, &dead) {
			err = fmt.Errorf("every member must be up: %w", err)
		}
		return fmt.Errorf("emptying the table: %w", err)
	}
	return nil
}

// runningMember is a member that runs.
func (c *cluster) runningMember() (*member, error) {
	for _, m := range c.All() {
		if m.Running() {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%w: no member runs", database.ErrNotMember)
}
