// Package mysql is what the databases of the MySQL family have in common, whatever makes
// a cluster of their servers: the servers' processes and data directories, the
// benchmark's table, and the client.
//
//	galera              MariaDB, certification over a group channel
//	groupreplication    MySQL, Paxos
//	ndb                 MySQL servers in front of NDB's data nodes
//
// # The table
//
// A record is a row, a field a column, as YCSB's own JDBC binding has it, so that either
// can read what the other loaded:
//
//	YCSB_KEY VARBINARY(255) PRIMARY KEY | FIELD0 MEDIUMBLOB | FIELD1 MEDIUMBLOB | ...
//
// Keys and values are bytes, so order is that of bytes and nothing is refused for its
// character set. An insert is a REPLACE, so that one that is sent again
// after an unknown outcome is no error. A table is made, and columns that it lacks are added,
// when a client first needs them.
//
// # The client
//
// A worker has one connection to one member, where reads and writes go, and a second one
// where only one member takes writes. Statements are prepared once for each connection.
// The driver is go-sql-driver/mysql without database/sql's pool above it, which would
// lock and wake goroutines for every operation; deadlines are set on the connection
// itself. Nothing is tried again; only a connection that was refused, with nothing sent,
// is made to the next member.
package mysql

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"skerry/internal/database"
	"skerry/internal/machine/files"
)

const (
	// User owns the table. It has no password, because servers are reachable only inside a lab.
	User = "skerry"
	// Schema is the schema (MySQL: database) of the table.
	Schema = "ycsb"
	// Table is the benchmark's table.
	Table = "usertable"
	// Key is the primary key column.
	Key = "YCSB_KEY"
	// Port is the default client port.
	Port = 3306
)

const (
	// AdminTimeout bounds one query to one server.
	AdminTimeout = 5 * time.Second
	// StopGrace is the time between SIGTERM and SIGKILL, in which a server flushes pages.
	StopGrace = 15 * time.Second
)

func config(addr, user, password, schema string) *driver.Config {
	c := driver.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.DBName = "tcp", addr, user, password, schema
	c.ClientFoundRows = true // an update that changes nothing has still found its row
	c.Logger = &driver.NopLogger{}
	return c
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// InstallBase returns the folder with an installation's bin, lib and share folders.
func InstallBase(ctx context.Context, on files.System, in database.Installation, program string) string {
	if in.Dir != "" {
		for _, d := range []string{"usr", ""} {
			if base := filepath.Join(in.Dir, d); files.Exists(ctx, on, filepath.Join(base, "share")) {
				return base
			}
		}
	}
	return filepath.Dir(filepath.Dir(in.Programs[program]))
}

// FindBelow returns the first of the paths below an installation's base that exists, or "".
func FindBelow(ctx context.Context, on files.System, base string, below ...string) string {
	for _, b := range below {
		if matches := files.Glob(ctx, on, filepath.Join(base, b)); len(matches) > 0 {
			return matches[0]
		}
	}
	return ""
}

// WholeSeconds formats a time for a server option in whole seconds. Fractions are an error.
func WholeSeconds(name string, d time.Duration) (string, error) {
	if d%time.Second != 0 {
		return "", fmt.Errorf("%s: %v is no whole number of seconds", name, d)
	}
	return strconv.FormatInt(int64(d/time.Second), 10), nil
}
