package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"skerry/internal/load"
)

func TestSettings(t *testing.T) {
	s, err := parseSettings(map[string]string{
		PropHosts: "10.0.0.1, 10.0.0.2:3307", PropMember: RoundRobin, PropTimeout: "500", "fieldcount": "3", "scanproportion": "0.9",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := settings{hosts: "10.0.0.1:3306,10.0.0.2:3307", user: User, schema: Schema, member: RoundRobin, reads: ReadsPrimary,
		timeout: 500 * time.Millisecond, connect: defaultConnect, table: Table, fields: 3, prefix: "field", size: 100}
	if s != want {
		t.Errorf("%+v\nwant %+v", s, want)
	}
	for _, test := range []struct{ name, value, want string }{
		{PropHosts, "", "mysql.hosts is missing"},
		{PropMember, "best", "one of nearest, first, round_robin"},
		{PropReads, "none", "one of primary, member"},
		{PropTimeout, "10s", "a whole number"},
		{PropSession, "sql_mode", "a list of name=value"},
		{PropSession, "wsrep_sync_wait=1;autocommit=0", "never committed"},
		{PropSession, "sql_log_bin=0, AutoCommit = OFF", "never committed"},
		{"mysql.host", "10.0.0.1", "did you mean mysql.hosts?"},
		{"fieldcount", "0", "a whole number from 1"},
	} {
		p := map[string]string{PropHosts: "a", test.name: test.value}
		if _, err := parseSettings(p); !errors.Is(err, ErrProperty) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s=%s: %v, want %q", test.name, test.value, err, test.want)
		}
	}
}

func TestServerErrors(t *testing.T) {
	for _, test := range []struct {
		number  uint16
		message string
		class   string
		outcome load.Outcome
		moves   bool
	}{
		{1213, "Deadlock found when trying to get lock; try restarting transaction", "deadlock", load.NotDone, false},
		{1205, "Lock wait timeout exceeded", "lock_timeout", load.NotDone, false},
		{1290, "The MySQL server is running with the --super-read-only option", "read_only", load.NotDone, true},
		{1047, "WSREP has not yet prepared node for application use", "not_ready", load.NotDone, true},
		{1062, "Duplicate entry", "duplicate", load.NotDone, false},
		{1180, "Got error 6 \"No such device or address\" during COMMIT", "commit", load.InDoubt, false},
		{3100, "Error on observer while running replication hook 'before_commit'.", "hook", load.InDoubt, true},
		{3100, "Error on observer while running replication hook 'trans_begin'.", "read_only", load.NotDone, true},
		{3101, "Plugin instructed the server to rollback the current transaction.", "rollback", load.InDoubt, true},
		{1053, "Server shutdown in progress", "shutdown", load.InDoubt, true},
		{1296, "Got error 4009 'Cluster Failure' from NDBCLUSTER", "cluster_failure", load.InDoubt, true},
		{1296, "Got error 157 'Connection to NDB failed' from NDBCLUSTER", "cluster_failure", load.InDoubt, true}, // 4009 as well
		{1296, "Got error 4004 'Attribute name or id not found' from NDBCLUSTER", "engine", load.NotDone, true},
		{1064, "You have an error in your SQL syntax", "error_1064", load.NotDone, false},
	} {
		e := &mysqldriver.MySQLError{Number: test.number, Message: test.message}
		var got *load.OpError
		if err := serverError("n1:3306", e); !errors.As(err, &got) {
			t.Fatalf("%d: %v has no outcome", test.number, err)
		}
		if got.Class != test.class || got.Outcome != test.outcome || got.Node != "n1:3306" || needsOtherMember(e) != test.moves {
			t.Errorf("%d %s: %s, %v, moves %v; want %s, %v, %v", test.number, test.message, got.Class, got.Outcome, needsOtherMember(e),
				test.class, test.outcome, test.moves)
		}
	}
}

func TestLost(t *testing.T) {
	for _, test := range []struct {
		err, cause error
		class      string
		outcome    load.Outcome
	}{
		{mysqldriver.ErrInvalidConn, io.EOF, "eof", load.InDoubt},
		{mysqldriver.ErrInvalidConn, os.ErrDeadlineExceeded, "timeout", load.InDoubt},
		{driver.ErrBadConn, io.ErrUnexpectedEOF, "eof", load.NotDone},
		{context.Canceled, nil, "canceled", load.InDoubt},
	} {
		var got *load.OpError
		if err := lostError("n1", test.err, test.cause); !errors.As(err, &got) || got.Class != test.class || got.Outcome != test.outcome {
			t.Errorf("%v of %v: %v, want %s, %v", test.err, test.cause, err, test.class, test.outcome)
		}
	}
}

func TestChoices(t *testing.T) {
	ms := time.Millisecond
	members := []member{{addr: "a", rtt: 1 * ms}, {addr: "b", rtt: 1*ms + 500*time.Microsecond}, {addr: "c", rtt: 30 * ms}}
	for _, test := range []struct {
		policy string
		worker int
		failed string
		want   string
	}{
		{Nearest, 0, "", "a b c"},
		{Nearest, 1, "", "b a c"}, // b is as near as a
		{Nearest, 2, "", "a b c"},
		{Nearest, 0, "a", "b c a"},
		{First, 5, "", "a b c"},
		{First, 5, "a", "b c a"},
		{RoundRobin, 1, "", "b c a"},
		{RoundRobin, 2, "", "c a b"},
		{RoundRobin, 2, "c", "a b c"},
	} {
		r := &router{settings: settings{member: test.policy}, members: append([]member{}, members...)}
		r.markFailed(test.failed)
		if got := strings.Join(r.candidates(test.worker), " "); got != test.want {
			t.Errorf("%s, worker %d, %q failed: %s, want %s", test.policy, test.worker, test.failed, got, test.want)
		}
	}
}

func TestNames(t *testing.T) {
	got := names([]string{"FIELD0", "field1", "Other", "field"}, "field")
	if d := cmp.Diff([]string{"field0", "field1", "Other", "field"}, got); d != "" {
		t.Error(d)
	}
	table := &table{has: map[string]bool{"field0": true}}
	if d := cmp.Diff([]string{"FIELD0"}, table.present([]string{"nofield", "FIELD0"})); d != "" {
		t.Error(d)
	}
	if got := string(appendQuoted(nil, "a`b")); got != "`a``b`" {
		t.Errorf("quoted as %s", got)
	}
}

func TestConfigText(t *testing.T) {
	var s Settings
	s.Add("port", 3306)
	s.Add("wsrep-provider-options", "gcache.size=1;gmcast.segment=0")
	want := "[mysqld]\nport = 3306\nwsrep-provider-options = \"gcache.size=1;gmcast.segment=0\"\n"
	if d := cmp.Diff(want, s.Text("mysqld")); d != "" {
		t.Error(d)
	}
}

// TestConnectWithoutServers opens a client of missing members.
func TestConnectWithoutServers(t *testing.T) {
	d := &Driver{Kind: "test"}
	_, err := d.Open(t.Context(), map[string]string{PropHosts: "127.0.0.1:1,127.0.0.1:2"})
	var e *load.OpError
	if !errors.As(err, &e) || e.Class != "refused" || e.Outcome != load.NotDone {
		t.Errorf("%v, want that both refused", err)
	}
}
