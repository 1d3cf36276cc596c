package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Answers of SELECT version(): PostgreSQL 15 of Debian, and products as their documentation shows them.
func TestShortVersion(t *testing.T) {
	for text, want := range map[string]string{
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit": "15.18",
		"PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang":                                            "11.2-YB-2.20.1.0-b0",
		"CockroachDB CCL v23.2.0 (x86_64-pc-linux-gnu, built 2024/01/16, go1.21)":                                             "CockroachDB CCL v23.2.0",
	} {
		if got := shortVersion(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		given  database.Options
		config string // among the lines
		err    string
	}{
		{config: "synchronous_commit = 'on'"},
		{config: "synchronous_standby_names = ''"},
		{config: "shared_buffers = '32768kB'"},
		{given: database.Options{"synchronous_standby_names": "ANY 1 (n2, n3)"}, config: "synchronous_standby_names = 'ANY 1 (n2, n3)'"},
		{given: database.Options{"synchronous_standby_names": "o'hara"}, config: "synchronous_standby_names = 'o''hara'"},
		{given: database.Options{"synchronous_commit": "remote_apply", "fsync": false}, config: "synchronous_commit = 'remote_apply'"},
		{given: database.Options{"fsync": false}, config: "fsync = 'off'"},
		{given: database.Options{"checkpoint_timeout": "5m"}, config: "checkpoint_timeout = '300s'"},
		{given: database.Options{"synchronous_comit": "on"}, err: "did you mean synchronous_commit?"},
		{given: database.Options{"synchronous_commit": "sometimes"}, err: "one of on, off"},
		{given: database.Options{"synchronous_standby_names": "a\nb"}, err: "may not hold"},
		{given: database.Options{"max_connections": 3}, err: "from 10 to"},
	} {
		o, err := parseOptions(test.given)
		switch {
		case test.err == "" && err != nil:
			t.Errorf("%v: %v", test.given, err)
		case test.err != "" && (!errors.Is(err, ErrOption) || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%v: error %v, want %q", test.given, err, test.err)
		case !strings.Contains(strings.Join(o.config, "\n"), test.config):
			t.Errorf("%v: %q lacks %q", test.given, o.config, test.config)
		}
	}
}

func TestSettings(t *testing.T) {
	s, err := parseSettings(map[string]string{PropHosts: "a,b:1", PropFieldCount: "3", "recordcount": "7"})
	if err != nil || s.hosts != "a:5432,b:1" || s.fields != 3 || s.table != "usertable" || s.read != readPrimary {
		t.Errorf("%+v, %v", s, err)
	}
	for given, want := range map[string]string{
		"":                                    "postgres.hosts is missing",
		"postgres.host=a":                     "did you mean postgres.hosts?",
		"postgres.hosts=a postgres.read=any":  "one of primary, standby, nearest",
		"postgres.hosts=a postgres.timeout=0": "whole number",
	} {
		p := make(map[string]string)
		for _, kv := range strings.Fields(given) {
			k, v, _ := strings.Cut(kv, "=")
			p[k] = v
		}
		if _, err := parseSettings(p); !errors.Is(err, ErrProperty) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}

func TestStatements(t *testing.T) {
	for _, test := range []struct {
		kind   byte
		fields []string
		want   string
	}{
		{kindRead, nil, `SELECT * FROM "t" WHERE ycsb_key = $1`},
		{kindRead, []string{`"a"`}, `SELECT ycsb_key, "a" FROM "t" WHERE ycsb_key = $1`},
		{kindScan, nil, `SELECT * FROM "t" WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2::bigint`},
		{kindUpdate, []string{`"a"`, `"b"`}, `UPDATE "t" SET "a" = $2, "b" = $3 WHERE ycsb_key = $1`},
		{kindInsert, []string{`"a"`, `"b"`}, `INSERT INTO "t" (ycsb_key, "a", "b") VALUES ($1, $2, $3) ON CONFLICT (ycsb_key) DO UPDATE SET "a" = EXCLUDED."a", "b" = EXCLUDED."b"`},
		{kindInsert, nil, `INSERT INTO "t" (ycsb_key) VALUES ($1) ON CONFLICT DO NOTHING`},
		{kindDelete, nil, `DELETE FROM "t" WHERE ycsb_key = $1`},
	} {
		if got := text(test.kind, `"t"`, test.fields); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

func TestClassify(t *testing.T) {
	server := func(severity, code string) error {
		return &pgconn.PgError{SeverityUnlocalized: severity, Severity: severity, Code: code}
	}
	for _, test := range []struct {
		err   error
		class string
		sent  load.Outcome
	}{
		{server("ERROR", "25006"), "read_only", load.NotDone},
		{server("ERROR", "40001"), "conflict", load.NotDone},
		{server("ERROR", "53100"), "disk_full", load.NotDone},
		{server("ERROR", "22021"), "sqlstate_22021", load.NotDone},
		{server("FATAL", "57P01"), "shutdown", load.InDoubt},
		{io.ErrUnexpectedEOF, "eof", load.InDoubt},
		{syscall.ECONNRESET, "reset", load.InDoubt},
		{os.ErrDeadlineExceeded, "timeout", load.InDoubt},
		{context.Canceled, "canceled", load.InDoubt},
	} {
		var e *load.OpError
		if err := classify("a:1", fmt.Errorf("wrapped: %w", test.err)); !errors.As(err, &e) || e.Class != test.class || e.Outcome != test.sent || e.Node != "a:1" {
			t.Errorf("%v: %+v, want %s %v", test.err, e, test.class, test.sent)
		}
	}
}

func TestSlots(t *testing.T) {
	for _, addr := range []string{"10.77.0.11:5432", "127.0.0.1:1"} {
		if got := nodeOfSlot(slotOf(addr)); got != addr {
			t.Errorf("slot %s belongs to %s, want %s", slotOf(addr), got, addr)
		}
	}
	for _, slot := range []string{"", "somebody", "skerry_", "skerry_10_0_0_1", "skerry_10_0_0_1__port"} {
		if got := nodeOfSlot(slot); got != "" {
			t.Errorf("slot %q was attributed to %s", slot, got)
		}
	}
}

func TestPosition(t *testing.T) {
	if !isLater("1/0", "0/FFFFFFFF") || isLater("0/3000060", "0/3000060") || !isLater("0/A000000", "0/9FFFFFF") || !isLater("0/1", "") {
		t.Error("positions are compared as text")
	}
}
