package cassandra

import (
	"context"
	"fmt"
	"strings"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/database"
)

var _ database.Handwritten = (*Cassandra)(nil)

// Handwritten implements database.Handwritten: a SELECT with gocql, token-aware, scanned
// into slices.
func (*Cassandra) Handwritten(_ context.Context, properties map[string]string) (func(context.Context, string) error, func() error, error) {
	g := gocql.NewCluster(strings.Split(properties[PropHosts], ",")...)
	g.Keyspace, g.WriteCoalesceWaitTime = defaultKeyspace, 0
	g.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy(), gocql.ShuffleReplicas())
	s, err := g.CreateSession()
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to cassandra: %w", err)
	}
	var columns []string
	values := make([][]byte, defaultFields)
	into := make([]any, defaultFields)
	for i := range values {
		columns, into[i] = append(columns, fmt.Sprint("field", i)), &values[i]
	}
	text := "SELECT " + strings.Join(columns, ", ") + " FROM usertable WHERE y_id = ?"
	read := func(ctx context.Context, key string) error { return s.Query(text, key).ScanContext(ctx, into...) }
	return read, func() error { s.Close(); return nil }, nil
}
