package database

import (
	"context"
	"errors"
	"fmt"

	"skerry/internal/load"
)

// External is a database whose clients can drive a cluster that Skerry did not start. All that a trial changes there is
// one table, which clients create when they connect. What a table is depends on the database: a prefix of keys, a table
// of the database or keyspace that the properties name, or a collection.
//
// The database is a TableManager, or its clients are load.Counters and load.Droppers.
type External interface {
	Database
	// ServerProperties returns the client properties for servers (host:port) and a table.
	ServerProperties(servers []string, table string) map[string]string
	// ServerVersion asks one server (host:port) for its version, as a client with these properties.
	ServerVersion(ctx context.Context, server string, properties map[string]string) (string, error)
}

// TableManager counts and drops tables with more than the operations of one client.
type TableManager interface {
	// CountTable counts the records of the table that properties name.
	CountTable(ctx context.Context, properties map[string]string) (int64, error)
	// DropTable removes the table that properties name, with its records and all else that clients have made for it. A
	// table that does not exist is no error. It refuses properties that name no table.
	DropTable(ctx context.Context, properties map[string]string) error
}

// PropTable is the workload's property for the name of the table.
const PropTable = "table"

// CountTable counts the records of the table that properties name.
func CountTable(ctx context.Context, d External, properties map[string]string) (n int64, err error) {
	if m, ok := d.(TableManager); ok {
		return m.CountTable(ctx, properties)
	}
	err = withClient(ctx, d, properties, func(c load.Client, table string) error {
		counter, ok := c.(load.Counter)
		if !ok {
			return fmt.Errorf("count the records of %s: %w", table, load.ErrUnsupported)
		}
		n, err = counter.Count(ctx, table)
		return err
	})
	return n, err
}

// DropTable removes the table that properties name: see TableManager.
func DropTable(ctx context.Context, d External, properties map[string]string) error {
	if m, ok := d.(TableManager); ok {
		return m.DropTable(ctx, properties)
	}
	return withClient(ctx, d, properties, func(c load.Client, table string) error {
		dropper, ok := c.(load.Dropper)
		if !ok {
			return fmt.Errorf("drop %s: %w", table, load.ErrUnsupported)
		}
		return dropper.DropTable(ctx, table)
	})
}

// errNoTable refuses properties without a table: the default table may belong to others.
var errNoTable = errors.New("no table is named")

func withClient(ctx context.Context, d Database, properties map[string]string, do func(c load.Client, table string) error) (err error) {
	table := properties[PropTable]
	if table == "" {
		return errNoTable
	}
	c, err := d.Open(ctx, properties)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return do(c, table)
}
