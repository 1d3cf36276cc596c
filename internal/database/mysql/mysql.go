// Package mysql holds the common parts of the MySQL family: server processes, data directories, the benchmark's table,
// and the client.
//
//	galera              MariaDB, certification over a group channel
//	groupreplication    MySQL, Paxos
//	ndb                 MySQL servers in front of NDB's data nodes
//
// # The table
//
// A record is a row and a field a column, as in YCSB's JDBC binding, so that both can read each other's data:
//
//	YCSB_KEY VARBINARY(255) PRIMARY KEY | FIELD0 MEDIUMBLOB | FIELD1 MEDIUMBLOB | ...
//
// Keys and values are bytes, ordered as bytes. An insert is a REPLACE, so that it can be repeated after an unknown
// outcome. Clients create missing tables and columns.
//
// # The client
//
// A worker has one connection to one member, and a second one if only one member accepts writes. Statements are
// prepared once per connection. The driver is go-sql-driver/mysql without the pool of database/sql, which would lock
// and wake goroutines for every operation. Only refused connections are retried, at the next member.
package mysql

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
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
		return "", fmt.Errorf("%s: %v is not a whole number of seconds", name, d)
	}
	return strconv.FormatInt(int64(d/time.Second), 10), nil
}

// Properties of the client.
const (
	PropHosts    = "mysql.hosts"           // host:port,host:port,...: the members
	PropUser     = "mysql.user"            // default skerry
	PropPassword = "mysql.password"        //
	PropSchema   = "mysql.schema"          // default ycsb
	PropMember   = "mysql.member"          // nearest, first, round_robin: which member a worker talks to
	PropReads    = "mysql.reads"           // primary, member: where reads go when one member takes all writes
	PropTimeout  = "mysql.timeout"         // milliseconds for an operation that has no other bound; default 10000
	PropConnect  = "mysql.connect_timeout" // milliseconds; default 2000
	PropSession  = "mysql.session"         // variables of each session: name=value;name=value
	// The workload's own properties say which columns the table has.
	propTable      = "table"
	propFieldCount = "fieldcount"
	propFieldName  = "fieldnameprefix"
	propFieldSize  = "fieldlength"
)

// Properties lists the client's properties.
func Properties() []string {
	return []string{PropHosts, PropUser, PropPassword, PropSchema, PropMember, PropReads, PropTimeout, PropConnect, PropSession}
}

// Choices of a member.
const (
	Nearest    = "nearest"
	First      = "first"
	RoundRobin = "round_robin"
)

// Members are the choices of a member.
func Members() []string { return []string{Nearest, First, RoundRobin} }

// Where reads go.
const (
	ReadsPrimary = "primary"
	ReadsMember  = "member"
)

const (
	defaultTimeout = 10 * time.Second
	defaultConnect = 2 * time.Second
	maxFields      = 1000 // InnoDB's limit of columns is 1017
)

// settings are the client's properties, understood. They are comparable.
type settings struct {
	hosts                  string // separated by commas
	user, password, schema string
	access                 string // see database.Access
	member, reads          string
	timeout, connect       time.Duration
	session                string
	table                  string
	fields                 int
	prefix                 string
	size                   int // of a field, in bytes
}

func parseSettings(p map[string]string) (settings, error) {
	r := database.ReadProperties(ErrProperty, "mysql.", p, Properties()...)
	s := settings{
		hosts:    strings.Join(r.Addresses(PropHosts, Port), ","),
		user:     r.Text(PropUser, User),
		password: r.Text(PropPassword, ""),
		access:   p[database.PropAccess],
		schema:   r.Text(PropSchema, Schema),
		member:   r.Choice(PropMember, Nearest, Members()...),
		reads:    r.Choice(PropReads, ReadsPrimary, ReadsPrimary, ReadsMember),
		timeout:  r.Milliseconds(PropTimeout, defaultTimeout),
		connect:  r.Milliseconds(PropConnect, defaultConnect),
		session:  r.Text(PropSession, ""),
		table:    r.Text(propTable, Table),
		fields:   r.Int(propFieldCount, 1, maxFields, 10),
		prefix:   r.Text(propFieldName, "field"),
		size:     r.Int(propFieldSize, 1, 1<<24-1, 100),
	}
	if s.session != "" && slices.ContainsFunc(strings.Split(s.session, ";"), func(v string) bool { return !strings.Contains(v, "=") }) {
		r.Reject(PropSession, "a list of name=value, separated by semicolons")
	}
	if slices.ContainsFunc(strings.FieldsFunc(s.session, func(c rune) bool { return c == ';' || c == ',' }), endsAutocommit) {
		r.Reject(PropSession, "possible: without autocommit the server answers OK to writes that are never committed")
	}
	return s, r.Err()
}

// endsAutocommit reports whether name=value has the server wait for a COMMIT, which this client never sends.
func endsAutocommit(variable string) bool {
	name, value, _ := strings.Cut(variable, "=")
	return strings.EqualFold(strings.Trim(name, " :`"), "autocommit") &&
		!slices.Contains([]string{"1", "on", "true", "default"}, strings.ToLower(strings.Trim(value, " '\"")))
}
