package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/load"
)

func TestInfoVersion(t *testing.T) {
	const valkey = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n"
	for _, test := range []struct {
		kind       kind
		info, want string
	}{
		{redisKind, "# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:0\r\n", "7.0.15"},
		{valkeyKind, valkey, "8.0.1"},
		{redisKind, valkey, "valkey 8.0.1"},
		{valkeyKind, "redis_version:7.0.15\r\n", "redis 7.0.15"},
		{redisKind, "", ""},
	} {
		if got := test.kind.infoVersion(test.info); got != test.want {
			t.Errorf("%q for %s: %q, want %q", test.info, test.kind.name, got, test.want)
		}
	}
}

// The slots are the answers of CLUSTER KEYSLOT of Redis 7.0.15.
func TestSlotOf(t *testing.T) {
	for key, want := range map[string]int{
		"": 0, "123456789": 12739, "foo": 12182, "user6284781860667377211": 10488,
		"{user1000}.following": 3443, "foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "foo{bar}{zap}": 5061, "foo{bar": 15278,
	} {
		if got := slotOf(key); got != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
		if got := slotOf([]byte(key)); got != want {
			t.Errorf("slot of the bytes %q is %d, want %d", key, got, want)
		}
	}
}

// The index is user data: these keys must not change.
func TestIndexKeys(t *testing.T) {
	for g, want := range map[int]string{0: "{skerry:3}:index", 17: "{skerry:11}:index", 31: "{skerry:54}:index"} {
		if indexKeys[g] != want {
			t.Errorf("part %d of the index is %q, want %q", g, indexKeys[g], want)
		}
	}
	for g, key := range indexKeys {
		if slot := slotOf(key); slot/groupSlots != g || slot != indexSlots[g] {
			t.Errorf("part %d of the index, %q, is in slot %d: outside its range", g, key, slot)
		}
	}
}

func TestParse(t *testing.T) {
	reply := "*4\r\n$3\r\nabc\r\n:-12\r\n$-1\r\n$0\r\n\r\n-ERR no\r\n"
	var got []string
	for at := 0; at < len(reply); {
		e, next, ok, err := parseElement([]byte(reply), at)
		if err != nil || !ok {
			t.Fatalf("at %d: %v, complete %v", at, err, ok)
		}
		got = append(got, fmt.Sprintf("%c%s,%d", e.kind, e.text, e.n))
		at = next
	}
	want := []string{"*,4", "$abc,3", ":-12,-12", "$,-1", "$,0", "-ERR no,0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"x1\r\n", "$a\r\n", "$-2\r\n", "$2\r\nabc\r\n", "*99999999999\r\n", "\r\n", ":\r\n", "+a\n"} {
		if _, _, _, err := parseElement([]byte(bad), 0); !errors.Is(err, errProtocol) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"*2\r\n$3\r\nabc\r\n:1\r\n", "-MOVED 1 a:1\r\n", "$-1\r\n", "$5\r\nab", "*-1\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, buf []byte) {
		for at := 0; at < len(buf); {
			e, next, ok, err := parseElement(buf, at)
			if err != nil || !ok {
				return
			}
			if next <= at || next > len(buf) {
				t.Fatalf("%q: the element at %d ends at %d", buf, at, next)
			}
			if e.kind == kindBulk && e.n >= 0 && int64(len(e.text)) != e.n {
				t.Fatalf("%q: a string of %d bytes with length %d", buf, len(e.text), e.n)
			}
			// A prefix of an element is incomplete, never another element.
			if _, _, ok, err := parseElement(buf[:next-1], at); ok || err != nil {
				t.Fatalf("%q: a prefix is complete (%v) or invalid (%v)", buf[at:next], ok, err)
			}
			at = next
		}
	})
}

const someNodes = `e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca 10.0.0.1:6379@16379,host-a myself,master - 0 0 1 connected 0-5460 5462 [5461->-07c37dfeb235213a872192d90877d0cd55635b91]
07c37dfeb235213a872192d90877d0cd55635b91 10.0.0.2:6379@16379 slave,fail? e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca 0 1426238317239 4 disconnected
`

func TestParseNodes(t *testing.T) {
	peers, err := parseNodes(someNodes)
	if err != nil {
		t.Fatal(err)
	}
	want := []peer{
		{id: "e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca", addr: "10.0.0.1:6379", flags: []string{"myself", "master"},
			link: true, epoch: 1,
			slots: []slotRange{{0, 5460}, {5462, 5462}}, migrating: map[int]string{5461: "07c37dfeb235213a872192d90877d0cd55635b91"}},
		{id: "07c37dfeb235213a872192d90877d0cd55635b91", addr: "10.0.0.2:6379", flags: []string{"slave", "fail?"}, epoch: 4,
			master: "e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca"},
	}
	if diff := cmp.Diff(want, peers, cmp.AllowUnexported(peer{}, slotRange{})); diff != "" {
		t.Error(diff)
	}
	if peers[0].countSlots() != 5462 || peers[0].stateText() != "master" {
		t.Errorf("%d slots, state %q", peers[0].countSlots(), peers[0].stateText())
	}
	for _, bad := range []string{"a b c", strings.Replace(someNodes, "0-5460", "0-16384", 1), strings.Replace(someNodes, "0-5460", "7-3", 1)} {
		if _, err := parseNodes(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func FuzzParseNodes(f *testing.F) {
	f.Add(someNodes)
	f.Fuzz(func(t *testing.T, text string) {
		peers, err := parseNodes(text)
		if err != nil {
			return
		}
		for _, p := range peers {
			for _, r := range p.slots {
				if r.from < 0 || r.to >= slots || r.from > r.to {
					t.Fatalf("%q: slots %v", text, r)
				}
			}
		}
	})
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		nodes int
		given database.Options
		args  string // among the server's arguments
		err   string
	}{
		{nodes: 8},
		{nodes: 8, given: database.Options{"masters": 8.0}},
		{nodes: 6, given: database.Options{"masters": uint64(3), "replicas": 1}},
		{nodes: 3, given: database.Options{"appendonly": true, "appendfsync": "always"}, args: "--appendfsync always --appendonly yes"},
		{nodes: 3, given: database.Options{"cluster_node_timeout": "2s"}, args: "--cluster-node-timeout 2000"},
		{nodes: 3, given: database.Options{"maxmemory": "64MiB", "maxmemory_policy": "allkeys-lru"}, args: "--maxmemory 67108864 --maxmemory-policy allkeys-lru"},
		{nodes: 3, given: database.Options{"master": 3}, err: "did you mean masters?"},
		{nodes: 3, given: database.Options{"cluster_node_timeuot": "2s"}, err: "did you mean cluster_node_timeout?"},
		{nodes: 3, given: database.Options{"flavour": "sweet"}, err: "known: appendfsync, appendonly"},
		{nodes: 2, err: "at least 3"},
		{nodes: 8, given: database.Options{"masters": 7}, err: "7 masters with 0 replicas each are 7 nodes, there are 8"},
		{nodes: 7, given: database.Options{"replicas": 1}, err: "there are 7"},
		{nodes: 3, given: database.Options{"masters": 3.5}, err: "masters: \"3.5\" is not a whole number"},
		{nodes: 3, given: database.Options{"port": 60000}, err: "from 1 to 55535"},
		{nodes: 3, given: database.Options{"cluster_node_timeout": 2000}, err: "a time with its unit"},
		{nodes: 3, given: database.Options{"cluster_node_timeout": "50ms"}, err: "below 100ms"},
		{nodes: 3, given: database.Options{"appendonly": "maybe"}, err: "true or false"},
		{nodes: 3, given: database.Options{"maxmemory": "lots"}, err: "an amount with its unit"},
		{nodes: 3, given: database.Options{"appendfsync": "never"}, err: "one of always, everysec, no"},
	} {
		o, err := parseOptions(test.nodes, test.given)
		switch {
		case test.err == "" && err != nil:
			t.Errorf("%d nodes, %v: %v", test.nodes, test.given, err)
		case test.err != "" && (!errors.Is(err, ErrOption) || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%d nodes, %v: error %v, want %q", test.nodes, test.given, err, test.err)
		case test.err == "" && !strings.Contains(strings.Join(o.config, " "), test.args):
			t.Errorf("%d nodes, %v: arguments %q lack %q", test.nodes, test.given, o.config, test.args)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, test := range []struct {
		given string // name=value, space separated
		seeds string
		scan  bool
		err   string
	}{
		{given: "redis.host=10.0.0.1", seeds: "10.0.0.1:6379"},
		{given: "redis.host=10.0.0.1 redis.port=7000", seeds: "10.0.0.1:7000"},
		{given: "redis.hosts=a:1,b redis.port=2", seeds: "a:1,b:2"},
		{given: "redis.host=a scanproportion=0.95", seeds: "a:6379", scan: true},
		{given: "redis.host=a scanproportion=0", seeds: "a:6379"},
		{given: "redis.host=a scanproportion=0.95 redis.scan=false", seeds: "a:6379"},
		{given: "redis.host=a redis.scan=true fieldcount=10", seeds: "a:6379", scan: true},
		{given: "", err: "redis.hosts is missing"},
		{given: "redis.host=a redis.pasword=x", err: "did you mean redis.password?"},
		{given: "redis.host=a redis.port=0", err: "from 1 to 65535"},
		{given: "redis.hosts=a:x", err: "not a list of host:port"},
		{given: "redis.host=a redis.cluster=perhaps", err: "not true or false"},
		{given: "redis.host=a redis.timeout=soon", err: "whole number"},
	} {
		p := make(map[string]string)
		for _, kv := range strings.Fields(test.given) {
			k, v, _ := strings.Cut(kv, "=")
			p[k] = v
		}
		s, err := parseSettings(p)
		switch {
		case test.err == "" && (err != nil || s.seeds != test.seeds || s.scan != test.scan):
			t.Errorf("%s: %+v, %v", test.given, s, err)
		case test.err != "" && (!errors.Is(err, ErrProperty) || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%s: error %v, want %q", test.given, err, test.err)
		}
	}
}

func TestClasses(t *testing.T) {
	for text, want := range map[string]string{
		"CLUSTERDOWN Hash slot not served": "clusterdown",
		"READONLY You can't write":         "readonly",
		"WRONGTYPE Operation against a":    "wrongtype",
		"ERR unknown command":              "error",
		"OOM command not allowed":          "oom",
		"some user's Lua error":            "error",
	} {
		var e *load.OpError
		if !errors.As(classifyReply("a:1", []byte(text)), &e) || e.Class != want || e.Outcome != load.NotDone || e.Node != "a:1" {
			t.Errorf("%q: %+v, want class %s", text, e, want)
		}
	}
}

func TestShare(t *testing.T) {
	for _, n := range []int{1, 3, 5, 8, 64} {
		next := 0
		for i := range n {
			from, to := slotShare(i, n)
			if from != next || to < from {
				t.Errorf("share %d of %d is %d-%d, want %d as its start", i, n, from, to, next)
			}
			next = to + 1
		}
		if next != slots {
			t.Errorf("%d shares end at %d", n, next)
		}
	}
}

func TestOptionNamesSorted(t *testing.T) {
	if !slices.IsSorted(optionNames) {
		t.Error("messages list the options in this order: sort them")
	}
}
