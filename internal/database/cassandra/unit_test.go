package cassandra

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/load"
	"skerry/internal/machine/files"
)

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		nodes int
		given database.Options
		want  string // "replication seeds tokens heap memtable"
		err   string
	}{
		{nodes: 8, want: "3 1 16 256 64"},
		{nodes: 2, want: "2 1 16 256 64"},
		{nodes: 8, given: database.Options{"strategy": "network"}, want: "1 1 16 256 64"},
		{nodes: 8, given: database.Options{"replication_factor": 5.0, "seeds": uint64(2), "num_tokens": 4}, want: "5 2 4 256 64"},
		{nodes: 3, given: database.Options{"heap": "1GiB"}, want: "3 1 16 1024 256"},
		{nodes: 3, given: database.Options{"heap": "1GiB", "memtable_space": "100MiB"}, want: "3 1 16 1024 100"},
		{nodes: 3, given: database.Options{"version": 4.1}, want: "3 1 16 256 64"},
		{nodes: 3, given: database.Options{"version": "3.11"}, err: "known: 5.0, 4.1"},
		{nodes: 3, given: database.Options{"replication_facter": 2}, err: "did you mean replication_factor?"},
		{nodes: 3, given: database.Options{"flavour": "sweet"}, err: "known: admin_port, commitlog_sync"},
		{nodes: 3, given: database.Options{"replication_factor": 4}, err: "needs as many nodes, there are 3"},
		{nodes: 3, given: database.Options{"seeds": 4}, err: "4 seeds on 3 nodes"},
		{nodes: 3, given: database.Options{"heap": "100MiB"}, err: "less than 128MiB"},
		{nodes: 3, given: database.Options{"heap": 256}, err: "an amount"},
		{nodes: 3, given: database.Options{"memtable_space": "200MiB"}, err: "more than half of the heap"},
		{nodes: 3, given: database.Options{"port": 7000}, err: "port and storage_port are both 7000"},
		{nodes: 3, given: database.Options{"ring_delay": "500ms"}, err: "the interval of gossip"},
		{nodes: 3, given: database.Options{"read_consistency": "any"}, err: "one of one, two"},
		{nodes: 3, given: database.Options{"write_consistency": "most"}, err: "one of any, one"},
		{nodes: 3, given: database.Options{"strategy": "far"}, err: "one of simple, network"},
		{nodes: 3, given: database.Options{"commitlog_sync": "never"}, err: "one of batch, group, periodic"},
		{nodes: 3, given: database.Options{"hinted_handoff": "perhaps"}, err: "true or false"},
	} {
		o, err := parseOptions(test.nodes, test.given)
		got := fmt.Sprint(o.replication, o.seeds, o.tokens, o.heap>>20, o.memtable>>20)
		switch {
		case test.err == "" && (err != nil || got != test.want):
			t.Errorf("%d nodes, %v: %s, %v; want %s", test.nodes, test.given, got, err, test.want)
		case test.err != "" && (!errors.Is(err, ErrOption) || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%d nodes, %v: error %v, want %q", test.nodes, test.given, err, test.err)
		}
	}
	if !slices.IsSorted(optionNames) {
		t.Error("messages list the options in this order: sort them")
	}
}

func TestFixed(t *testing.T) {
	nodes := []string{"a", "b", "c", "d"}
	for _, test := range []struct {
		given database.Options
		want  []string
	}{
		{nil, []string{"a"}},
		{database.Options{"seeds": 2}, nil},
		{database.Options{"replication_factor": 4, "seeds": 2}, nodes},
		{database.Options{"strategy": "network", "seeds": 2}, nil},
	} {
		var got []string
		for _, n := range nodes {
			if New().Fixed(nodes, test.given)[n] != "" {
				got = append(got, n)
			}
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Errorf("%v: %s", test.given, d)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, test := range []struct {
		given string // name=value, space separated
		want  string // hosts, levels, center
		err   string
	}{
		{given: "hosts=a", want: "a:9042 quorum quorum "},
		{given: "hosts=a:1,b port=2", want: "a:1,b:2 quorum quorum "},
		{given: "hosts=a cassandra.readconsistencylevel=LOCAL_ONE cassandra.writeconsistencylevel=any", want: "a:9042 local_one any "},
		{given: "hosts=a cassandra.localdatacenter=Seoul fieldcount=3", want: "a:9042 quorum quorum Seoul"},
		{given: "", err: "hosts is missing"},
		{given: "hosts=a cassandra.keyspce=x", err: "did you mean cassandra.keyspace?"},
		{given: "hosts=a cassandra.readconsistencylevel=any", err: "one of one, two"},
		{given: "hosts=a cassandra.schema=drop", err: "one of keep, extend"},
		{given: "hosts=a fieldcount=none", err: "whole number"},
	} {
		p := make(map[string]string)
		for _, kv := range strings.Fields(test.given) {
			k, v, _ := strings.Cut(kv, "=")
			p[k] = v
		}
		s, err := parseSettings(p)
		got := strings.Join([]string{s.hosts, s.readLevel, s.writeLevel, s.center}, " ")
		switch {
		case test.err == "" && (err != nil || got != test.want):
			t.Errorf("%s: %s, %v; want %s", test.given, got, err, test.want)
		case test.err != "" && (!errors.Is(err, ErrProperty) || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s: error %v, want %q", test.given, err, test.err)
		}
	}
	for _, l := range slices.Concat(readLevels, writeLevels) {
		if !strings.EqualFold(consistencyLevel(l).String(), l) {
			t.Errorf("level %s became %v in the driver", l, consistencyLevel(l))
		}
	}
}

func TestTokens(t *testing.T) {
	for _, test := range []struct {
		sizes     []int
		perMember int
	}{{[]int{1}, 1}, {[]int{3}, 16}, {[]int{8}, 16}, {[]int{1, 1, 1}, 16}, {[]int{2, 3, 1}, 8}, {[]int{64}, 256}} {
		tokens := assignTokens(test.sizes, test.perMember)
		seen := make(map[int64]bool)
		for c, members := range tokens {
			owners := make(map[string][]string)
			for m, list := range members {
				if len(list) != test.perMember {
					t.Errorf("%v: member %d of center %d has %d tokens, want %d", test.sizes, m, c, len(list), test.perMember)
				}
				for _, token := range list {
					if seen[token] || token == math.MinInt64 {
						t.Errorf("%v: token %d is given twice or is nobody's", test.sizes, token)
					}
					seen[token] = true
					owners[fmt.Sprint(m)] = append(owners[fmt.Sprint(m)], fmt.Sprint(token))
				}
			}
			spans, err := buildRing(owners)
			if err != nil {
				t.Fatal(err)
			}
			share := make(map[string]float64)
			for _, s := range spans {
				share[s.owner] += (float64(s.to) - float64(s.from)) / (1 << 63) / 2
			}
			for owner, got := range share {
				if want := 1 / float64(test.sizes[c]); math.Abs(got-want) > 1e-6 {
					t.Errorf("%v: member %s of center %d owns %v of the ring, want %v", test.sizes, owner, c, got, want)
				}
			}
		}
	}
}

// The parts cover the ring without overlap.
func TestRing(t *testing.T) {
	spans, err := buildRing(map[string][]string{"a": {"-5", "7"}, "b": {"0"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []tokenRange{{math.MinInt64, -5, "a"}, {-5, 0, "b"}, {0, 7, "a"}, {7, math.MaxInt64, "a"}}
	if d := cmp.Diff(want, spans, cmp.AllowUnexported(tokenRange{})); d != "" {
		t.Error(d)
	}
	if _, err := buildRing(map[string][]string{"a": {"x"}}); err == nil {
		t.Error("no error for a token that is not a number")
	}
	if _, err := buildRing(nil); !errors.Is(err, database.ErrNotMember) {
		t.Errorf("a ring without tokens: error %v", err)
	}
}

// The hashes are those of the algorithm's author. Cassandra's variant differs beyond ASCII; TestCopies compares these
// with Cassandra.
func TestTokenOf(t *testing.T) {
	for key, want := range map[string]uint64{
		"":                          0,
		"hello":                     0xcbd8a7b341bd9b02,
		"hello, world":              0x342fac623a5ebc8e,
		"19 Jan 2038 at 3:14:07 AM": 0xb89e5988b737affc,
		"The quick brown fox jumps over the lazy dog.": 0xcd99481f9ee902c9,
	} {
		if got := tokenOf(key); got != int64(want) {
			t.Errorf("token of %q is %d, want %d", key, got, int64(want))
		}
	}
}

func TestHolds(t *testing.T) {
	// In this ring a key's token is found by searching for the token itself.
	key := "user1"
	at := tokenOf(key)
	spans := []tokenRange{{to: at - 2, owner: "z"}, {to: at, owner: "a"}, {to: at + 1, owner: "a"}, {to: at + 2, owner: "b"}, {to: at + 3, owner: "c"}}
	centers := map[string]string{"z": "far", "a": "near", "b": "far", "c": "near"}
	for _, test := range []struct {
		centers     map[string]string
		replication int
		want        string
	}{
		{nil, 1, "a"}, {nil, 2, "ab"}, {nil, 3, "abc"}, {nil, 4, "abcz"},
		{centers, 1, "ab"}, {centers, 2, "abcz"},
	} {
		got := ""
		for _, m := range []string{"a", "b", "c", "z"} {
			if (&locator{ring: spans, centers: test.centers, replication: test.replication, member: m}).holds(key) {
				got += m
			}
		}
		if got != test.want {
			t.Errorf("%d replicas, centers %v: held by %s, want %s", test.replication, test.centers, got, test.want)
		}
	}
}

// A server writes while it starts: with a window of ten seconds it takes minutes.
func TestWindowOfGroup(t *testing.T) {
	for _, test := range []struct {
		given database.Options
		want  time.Duration
	}{
		{nil, 10 * time.Second},
		{database.Options{"commitlog_sync": "group"}, 15 * time.Millisecond},
		{database.Options{"commitlog_sync": "group", "commitlog_sync_period": "1s"}, time.Second},
	} {
		if o, err := parseOptions(3, test.given); err != nil || o.commitlogPeriod != test.want {
			t.Errorf("%v: %v, %v; want %v", test.given, o.commitlogPeriod, err, test.want)
		}
	}
}

func TestConfiguration(t *testing.T) {
	o, err := parseOptions(3, database.Options{"commitlog_sync": "group", "commitlog_sync_period": "5ms", "disk_failure_policy": "die", "port": 9142})
	if err != nil {
		t.Fatal(err)
	}
	c := config{options: o, dir: t.TempDir(), listen: "172.18.0.2", addr: "10.0.0.2", center: "dc1", seeds: []string{"10.0.0.1", "10.0.0.2"}, tokens: []int64{-1, 5}}
	if err := c.write(t.Context(), files.Local{}); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := yaml.Unmarshal([]byte(c.yaml()), &got); err != nil {
		t.Fatalf("cassandra.yaml: %v", err)
	}
	for name, want := range map[string]string{
		"listen_address": "172.18.0.2", "rpc_address": "172.18.0.2", "broadcast_address": "10.0.0.2", "broadcast_rpc_address": "10.0.0.2",
		"native_transport_port": "9142", "auto_bootstrap": "false", "initial_token": "-1,5",
		"commitlog_sync": "group", "commitlog_sync_group_window": "5ms", "commit_failure_policy": "die", "memtable_heap_space": "64MiB",
		"data_file_directories": "[" + c.dir + "/data]",
		"seed_provider":         "[map[class_name:org.apache.cassandra.locator.SimpleSeedProvider parameters:[map[seeds:10.0.0.1,10.0.0.2]]]]",
	} {
		if fmt.Sprint(got[name]) != want {
			t.Errorf("%s is %v, want %s", name, got[name], want)
		}
	}
	c.listen = c.addr
	if strings.Contains(c.yaml(), "broadcast") {
		t.Error("the listen address is also announced")
	}
	c.listen = "172.18.0.2"
	if _, ok := got["commitlog_sync_period"]; ok {
		t.Error("commitlog_sync_period is set with commitlog_sync: group, which Cassandra rejects")
	}
	args := strings.Join(c.javaArguments(libraries{java: "java", classpath: "lib/*", jamm: "jamm.jar", jolokia: "jolokia.jar"}, 7*time.Second), " ")
	for _, want := range []string{"-Xmx256m ", "-XX:+UseSerialGC", "-javaagent:jolokia.jar=host=172.18.0.2,port=7199,", "-Dcassandra.ring_delay_ms=7000 "} {
		if !strings.Contains(args, want) {
			t.Errorf("the arguments of java lack %s: %s", want, args)
		}
	}
}

func TestReplication(t *testing.T) {
	for _, test := range []struct {
		strategy string
		want     string
	}{
		{strategySimple, "{'class': 'SimpleStrategy', 'replication_factor': 2}"},
		{strategyNetwork, "{'class': 'NetworkTopologyStrategy', 'Seoul': 2, 'L''Aquila': 2}"},
	} {
		c := &cluster{options: options{strategy: test.strategy, replication: 2}, centers: []string{"Seoul", "L'Aquila"}}
		if got := c.replicationCQL(); got != test.want {
			t.Errorf("%s: %s, want %s", test.strategy, got, test.want)
		}
	}
}

func TestProperty(t *testing.T) {
	for name, want := range map[string]string{"Seoul": "Seoul", "São Paulo": `S\u00E3o\u0020Paulo`, `a\b=#`: `a\u005Cb\u003D\u0023`} {
		if got := escapeProperty(name); got != want {
			t.Errorf("%q is formatted as %s, want %s", name, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	var v struct{ OperationMode string }
	if err := decode([]byte(`{"status":200,"value":{"OperationMode":"NORMAL"},"request":{}}`), &v); err != nil || v.OperationMode != "NORMAL" {
		t.Errorf("%+v, %v", v, err)
	}
	if err := decode([]byte(`{"status":404,"error":"no such bean"}`), &v); !errors.Is(err, errJMX) || !strings.Contains(err.Error(), "no such bean") {
		t.Errorf("a refusal gives error %v", err)
	}
	for _, bad := range []string{"", "<html>", `{"status":200,"value":7}`} {
		if err := decode([]byte(bad), &v); err == nil {
			t.Errorf("%q was accepted as an answer", bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"status":200,"value":{"OwnershipWithPort":{"/127.0.0.1:7000":0.5},"LiveNodes":["127.0.0.1"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v view
		_ = decode(text, &v) // must not panic
		for endpoint := range v.Owners {
			endpointAddress(endpoint)
		}
	})
}

func TestAddressOf(t *testing.T) {
	for endpoint, want := range map[string]string{
		"10.0.0.1:7000": "10.0.0.1", "/10.0.0.1:7000": "10.0.0.1", "name/10.0.0.1:7000": "10.0.0.1", "10.0.0.1": "10.0.0.1",
	} {
		if got := endpointAddress(endpoint); got != want {
			t.Errorf("%s is at %s, want %s", endpoint, got, want)
		}
	}
}

// reply is an error response of a member.
type reply int

func (r reply) Code() int       { return int(r) }
func (r reply) Message() string { return "no" }
func (r reply) Error() string   { return "no" }

func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		err   error
		read  string
		write string
	}{
		{reply(gocql.ErrCodeUnavailable), "unavailable failed", "unavailable failed"},
		{reply(gocql.ErrCodeOverloaded), "overloaded failed", "overloaded failed"},
		{reply(gocql.ErrCodeWriteTimeout), "write_timeout failed", "write_timeout unknown"},
		{reply(gocql.ErrCodeWriteFailure), "write_failure failed", "write_failure unknown"},
		{reply(gocql.ErrCodeReadTimeout), "read_timeout failed", "read_timeout failed"},
		{reply(gocql.ErrCodeServer), "server_error failed", "server_error unknown"},
		{reply(0x7777), "server_error failed", "server_error unknown"},
		{gocql.ErrNoConnections, "no_connection failed", "no_connection failed"},
		{gocql.ErrNoStreams, "no_stream failed", "no_stream failed"},
		{gocql.ErrTimeoutNoResponse, "timeout unknown", "timeout unknown"},
		{gocql.ErrConnectionClosed, "eof unknown", "eof unknown"},
		{errors.New("strange"), "error unknown", "error unknown"},
	} {
		for write, want := range map[bool]string{false: test.read, true: test.write} {
			var e *load.OpError
			if !errors.As(classifyError(fmt.Errorf("wrapped: %w", test.err), nil, write), &e) || e.Class+" "+e.Outcome.String() != want {
				t.Errorf("%v, write %t: %+v, want %s", test.err, write, e, want)
			}
		}
	}
}

func TestLocks(t *testing.T) {
	for _, r := range Recipes() {
		jars, err := install.ParseLock(r.Jars)
		if err != nil {
			t.Fatal(err)
		}
		if jars[0].Artifact != "cassandra-all" || !strings.HasPrefix(jars[0].Version, r.Series+".") {
			t.Errorf("the first jar of %s is %v", r.Key(), jars[0])
		}
		if !slices.ContainsFunc(jars, func(j install.Jar) bool { return j.Classifier == "javaagent" }) {
			t.Errorf("%s lacks the agent", r.Key())
		}
	}
}
