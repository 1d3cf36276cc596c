package groupreplication

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/test/testkit/testhost"
)

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		nodes int
		given database.Options
		want  mysql.Settings
		err   string
	}{
		{given: nil},
		{given: database.Options{"group_replication_consistency": "AFTER", "group_replication_member_expel_timeout": "3s"},
			want: mysql.Settings{{Name: "group_replication_consistency", Value: "AFTER"}, {Name: "group_replication_member_expel_timeout", Value: "3"}}},
		{given: database.Options{"group_replication_member_expel_timeout": 0}, want: mysql.Settings{{Name: "group_replication_member_expel_timeout", Value: "0"}}},
		{given: database.Options{"group_replication_flow_control_mode": "DISABLED"}, want: mysql.Settings{{Name: "group_replication_flow_control_mode", Value: "DISABLED"}}},
		{given: database.Options{"group_replication_consistensy": "AFTER"}, err: "did you mean group_replication_consistency?"},
		{given: database.Options{"group_replication_consistency": "after"}, err: "one of EVENTUAL"},
		{given: database.Options{"group_replication_member_expel_timeout": "1500ms"}, err: "a whole number of seconds"},
		{given: database.Options{"group_replication_message_cache_size": "1MiB"}, err: "128MiB or more"},
		{given: database.Options{"port": groupPort}, err: "members talk there"},
		{given: database.Options{"single_primary": "maybe"}, err: "true or false"},
		{nodes: 10, err: "1 to 9 members"},
	} {
		o, err := parseOptions(cmp.Or(test.nodes, 3), test.given)
		if test.err != "" {
			if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v: error %v, want %q", test.given, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", test.given, err)
		}
		if d := gocmp.Diff(test.want, o.group); d != "" {
			t.Errorf("%v: %s", test.given, d)
		}
	}
}

func TestSettings(t *testing.T) {
	o, err := parseOptions(3, database.Options{"single_primary": false, "sync_binlog": 1, "group_replication_consistency": "BEFORE"})
	if err != nil {
		t.Fatal(err)
	}
	h := testhost.Loopback(t, 1)[0]
	text := o.settings(h, nil, 7, []string{"10.0.0.1:33061", "10.0.0.2:33061"}).Text("mysqld")
	for _, want := range []string{
		"server-id = 7\n", "sync-binlog = 1\n", "report-host = " + h.Addr() + "\n", "loose-group-replication-single-primary-mode = OFF\n",
		"loose-group-replication-enforce-update-everywhere-checks = ON\n", "loose-group-replication-group-seeds = 10.0.0.1:33061,10.0.0.2:33061\n",
		"loose-group-replication-local-address = " + h.Addr() + ":33061\n", "loose-group_replication_consistency = BEFORE\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestDiscover(t *testing.T) {
	a, b := []string{"10.0.0.1", "3306", online, "PRIMARY"}, []string{"10.0.0.2", "3306", online, "SECONDARY"}
	with := func(row []string, at int, value string) []string {
		c := append([]string{}, row...)
		c[at] = value
		return c
	}
	for _, test := range []struct {
		rows    [][]string
		members []string
		primary string
		err     error
	}{
		{[][]string{b, a}, []string{"10.0.0.2:3306", "10.0.0.1:3306"}, "10.0.0.1:3306", nil},
		{[][]string{a, with(b, 2, "RECOVERING")}, []string{"10.0.0.1:3306"}, "10.0.0.1:3306", nil},
		{[][]string{a, with(b, 3, "PRIMARY")}, []string{"10.0.0.1:3306", "10.0.0.2:3306"}, mysql.AnyMember, nil},
		{[][]string{with(a, 2, "UNREACHABLE"), b}, nil, "", errNoPrimary},
		{[][]string{{"10.0.0.1", "3306", "OFFLINE", ""}}, nil, "", errNoPrimary},
	} {
		members, primary, err := discover(func(string) ([][]string, error) { return test.rows, nil })
		if d := gocmp.Diff(test.members, members); d != "" || primary != test.primary || !errors.Is(err, test.err) {
			t.Errorf("%v: %v %q %v", test.rows, members, primary, err)
		}
	}
}

func TestViews(t *testing.T) {
	p, s, lost := member{host: "a", state: online, role: "PRIMARY"}, member{host: "b", state: online, role: "SECONDARY"}, member{host: "c", state: "UNREACHABLE", role: "SECONDARY"}
	for _, test := range []struct {
		view  []member
		size  int
		want  string
		stuck bool
	}{
		{[]member{p, s}, 2, "", false},
		{[]member{p, s}, 3, "2 members, not 3", false},
		{[]member{s, s}, 2, errNoPrimary.Error(), false},
		{[]member{p, s, lost}, 3, "c is UNREACHABLE", false},
		{[]member{p, lost}, 2, "c is UNREACHABLE", true},
		{nil, 0, errNoPrimary.Error(), false},
	} {
		got := ""
		if err := checkView(test.view, test.size); err != nil {
			got = err.Error()
		}
		if got != test.want || lacksMajority(test.view) != test.stuck {
			t.Errorf("%v: %q, stuck %v; want %q, %v", test.view, got, lacksMajority(test.view), test.want, test.stuck)
		}
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]string{
		"/x/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))":                     "9.7.4",
		"/usr/sbin/mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)":    "8.0.36",
		"/usr/sbin/mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 ()": "",
	} {
		if got := Recipe.Version(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
