package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/test/testkit/testhost"
)

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		given database.Options
		rtt   time.Duration
		args  string // among the server's arguments
		err   string
	}{
		{args: "--heartbeat-interval 100 --election-timeout 1000"},
		{rtt: 20 * time.Millisecond, args: "--heartbeat-interval 100 --election-timeout 1000"},
		{rtt: 223 * time.Millisecond, args: "--heartbeat-interval 223 --election-timeout 2230"},
		{rtt: time.Minute, args: "--heartbeat-interval 5000 --election-timeout 50000"},
		{given: database.Options{"heartbeat_interval": "50ms", "election_timeout": "500ms"}, args: "--heartbeat-interval 50 --election-timeout 500"},
		{given: database.Options{"heartbeat_interval": "300ms"}, args: "--heartbeat-interval 300 --election-timeout 3000"},
		{given: database.Options{"snapshot_count": 1000}, args: "--snapshot-count 1000"},
		{given: database.Options{"quota_backend": "4GiB"}, args: "--quota-backend-bytes 4294967296"},
		{given: database.Options{"auto_compaction_retention": "5m"}, args: "--auto-compaction-mode periodic --auto-compaction-retention 5m0s"},
		{given: database.Options{"pre_vote": true}, args: "--pre-vote=true"},
		{given: database.Options{"elecion_timeout": "1s"}, err: "did you mean election_timeout?"},
		{given: database.Options{"election_timeout": "200ms"}, err: "less than 5 times"},
		{given: database.Options{"election_timeout": "60s"}, err: "over 50s"},
		{given: database.Options{"read": "stale"}, err: "one of linearizable, serializable"},
		{given: database.Options{"port": 2380}, err: "both 2380"},
	} {
		o, err := parseOptions(test.given, test.rtt)
		switch {
		case test.err == "" && err != nil:
			t.Errorf("%v: %v", test.given, err)
		case test.err != "" && (!errors.Is(err, ErrOption) || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%v: error %v, want %q", test.given, err, test.err)
		case !strings.Contains(strings.Join(o.config, " "), test.args):
			t.Errorf("%v: arguments %q lack %q", test.given, o.config, test.args)
		}
	}
}

func TestSettings(t *testing.T) {
	for given, want := range map[string]string{
		"":                                   "etcd.endpoints is missing",
		"etcd.endpoint=a":                    "did you mean etcd.endpoints?",
		"etcd.endpoints=a etcd.read=stale":   "one of linearizable, serializable",
		"etcd.endpoints=a etcd.timeout=soon": "whole number",
		"etcd.endpoints=a etcd.route=any":    "one of nearest, listed, spread",
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
	s, err := parseSettings(map[string]string{PropEndpoints: "a,b:1", "fieldcount": "3"})
	if d := cmp.Diff([]string{"a:2379", "b:1"}, s.endpoints); d != "" || err != nil || s.serializable || s.route != routeNearest {
		t.Errorf("%+v, %v %s", s, err, d)
	}
}

func TestClassify(t *testing.T) {
	dial := func(why string) error {
		return status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.1:2379: connect: `+why+`"`)
	}
	for _, test := range []struct {
		err   error
		class string
		sent  load.Outcome
	}{
		{rpctypes.ErrNoLeader, "no_leader", load.NotDone},
		{rpctypes.ErrNoSpace, "no_space", load.NotDone},
		{rpctypes.ErrTooManyRequests, "too_many", load.NotDone},
		{status.Error(codes.Unknown, "raft proposal dropped"), "proposal_dropped", load.NotDone},
		{dial("connection refused"), "refused", load.NotDone},
		{dial("no route to host"), "unreachable", load.NotDone},
		{dial("i/o timeout"), "connect_timeout", load.NotDone},
		{status.Error(codes.Unavailable, "error reading from server: read tcp: connection reset by peer"), "reset", load.InDoubt},
		{status.Error(codes.Unavailable, "error reading from server: EOF"), "eof", load.InDoubt},
		{rpctypes.ErrTimeout, "timeout", load.InDoubt},
		{rpctypes.ErrTimeoutDueToLeaderFail, "timeout", load.InDoubt},
		{context.DeadlineExceeded, "timeout", load.InDoubt},
		{status.Error(codes.DeadlineExceeded, "late"), "timeout", load.InDoubt},
		{context.Canceled, "canceled", load.InDoubt},
		{rpctypes.ErrStopped, "stopped", load.InDoubt},
		{errors.New("strange"), "error", load.InDoubt},
	} {
		var e *load.OpError
		if err := classifyError("a:1", fmt.Errorf("wrapped: %w", test.err)); !errors.As(err, &e) || e.Class != test.class || e.Outcome != test.sent || e.Node != "a:1" {
			t.Errorf("%v: %+v, want %s %v", test.err, e, test.class, test.sent)
		}
	}
}

func TestMerge(t *testing.T) {
	var d decoder
	old := appendRecord(nil, record("a", "b", ""))
	fields, err := d.fields(nil, old, nil)
	if err != nil {
		t.Fatal(err)
	}
	fields = mergeFields(fields, []load.Field{{Name: "field1", Value: []byte("new")}, {Name: "more", Value: []byte("x")}})
	got, err := d.fields(nil, appendRecord(nil, fields), nil)
	if err != nil || text(got) != "field0=a field1=new field2= more=x" {
		t.Errorf("%q, %v", text(got), err)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, record("a", "", "c")))
	f.Add([]byte{})
	f.Add([]byte{3, 1, 'a'})
	f.Fuzz(func(t *testing.T, value []byte) {
		var d decoder
		fields, err := d.fields(nil, value, nil)
		if err != nil {
			return
		}
		again, err := d.fields(nil, appendRecord(nil, fields), nil)
		if err != nil || cmp.Diff(fields, again) != "" {
			t.Errorf("%q was parsed as %v, then as %v, %v", value, fields, again, err)
		}
	})
}

// TestLeader: whichever member wins the elections, the member that was asked for leads, also a cluster
// that is emptied for another trial.
func TestLeader(t *testing.T) {
	nodes := testhost.Loopback(t, 3)
	c := startCluster(t, New(), nodes, database.Options{"leader": "n3"})
	if got := leaderOf(t, c).host.Name(); got != "n3" {
		t.Errorf("%s leads the new cluster", got)
	}
	ctx := t.Context()
	other, err := c.findServing(ctx, c.On("n3"))
	if err != nil {
		t.Fatal(err)
	}
	if err := moveLeader(ctx, c.On("n3"), other); err != nil {
		t.Fatal(err)
	}
	if err := c.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if got := leaderOf(t, c).host.Name(); got != "n3" {
		t.Errorf("%s leads the emptied cluster", got)
	}
	if _, err := New().Start(ctx, database.Env{Nodes: nodes, Options: database.Options{"leader": "n9"}}); !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), "n1, n2, n3") {
		t.Errorf("an unknown node as leader: %v", err)
	}
}

func leaderOf(t *testing.T, c *cluster) *member {
	t.Helper()
	m, err := c.findServing(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
