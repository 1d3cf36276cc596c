package redis

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"skerry/internal/database"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// Servers behind one address return no host name of their own. Clients keep the host that they connected to, with the
// port that the server returns, in the slot map and in redirects.
func TestUnknownEndpoint(t *testing.T) {
	d := New()
	nodes := startUnknownEndpoint(t, d)
	c := open(t, d, map[string]string{PropHosts: nodes[0].Options().Addr})
	const rows = 200
	for i := range rows {
		if err := c.Insert(t.Context(), "", fmt.Sprint("user", i), record("a")); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		if size, err := n.DBSize(t.Context()).Result(); err != nil || size == 0 || size == rows {
			t.Errorf("%s has %d of %d records, %v", n.Options().Addr, size, rows, err)
		}
	}
	// A slot without records moves: the client learns it from MOVED.
	key, slot := freeKey(rows)
	id, err := nodes[2].Do(t.Context(), "CLUSTER", "MYID").Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 0, 1} { // the new owner first
		if err := nodes[n].Do(t.Context(), "CLUSTER", "SETSLOT", slot, "NODE", id).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Insert(t.Context(), "", key, record("a")); err != nil {
		t.Fatal(err)
	}
	if n, err := nodes[2].Exists(t.Context(), key).Result(); err != nil || n != 1 {
		t.Errorf("%s has %d copies of %s, %v", nodes[2].Options().Addr, n, key, err)
	}
}

// freeKey returns a key in a slot of the first third that has none of user0 to user(n-1).
func freeKey(n int) (string, int) {
	full := map[int]bool{}
	for i := range n {
		full[slotOf(fmt.Sprint("user", i))] = true
	}
	for i := n; ; i++ {
		key := fmt.Sprint("user", i)
		if s := slotOf(key); s < slots/3 && !full[s] {
			return key, s
		}
	}
}

// startUnknownEndpoint forms a cluster of three servers that differ only in their ports.
func startUnknownEndpoint(t *testing.T, d *Redis) (nodes []*goredis.Client) {
	t.Helper()
	testkit.Need(t, testkit.Installed(Recipe))
	in, err := d.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	h := testhost.Loopback(t, 1)[0]
	for i := range minMasters {
		port := strconv.Itoa(7001 + i)
		_, err := h.Start(t.Context(), host.Command{Name: "redis" + port, Path: in.Programs["redis-server"], Env: in.Env, Dir: h.Dir(),
			Log: filepath.Join(h.Dir(), port+".log"), Args: []string{
				"--bind", h.Addr(), "--port", port, "--save", "", "--protected-mode", "no", "--cluster-enabled", "yes",
				"--cluster-announce-ip", h.Addr(),
				"--cluster-config-file", port + ".conf", "--cluster-preferred-endpoint-type", "unknown-endpoint"}})
		if err != nil {
			t.Fatal(err)
		}
		c := goredis.NewClient(nodeOptions(net.JoinHostPort(h.Addr(), port), database.Login{}, defaultTimeout))
		t.Cleanup(func() { c.Close() })
		nodes = append(nodes, c)
	}
	do := func(n int, args ...any) error { return nodes[n].Do(t.Context(), args...).Err() }
	for i := range nodes {
		from, to := slotShare(i, minMasters)
		await(t, "server "+strconv.Itoa(i), func() bool { return nodes[i].Ping(t.Context()).Err() == nil })
		if err := do(i, "CLUSTER", "ADDSLOTSRANGE", from, to); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if err := do(0, "CLUSTER", "MEET", h.Addr(), 7001+i); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range nodes {
		await(t, "the cluster", func() bool {
			info, err := nodes[i].ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return nodes
}

// await waits for a condition, with a timeout for busy machines.
func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !met(); time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready after a minute", what)
		}
	}
}

// Responses to CLUSTER SLOTS of servers that were contacted at 10.0.0.9:7000.
func TestSlotMap(t *testing.T) {
	node := func(host any, metadata ...any) []any { return []any{host, int64(7001), "id", metadata} }
	for name, test := range map[string]struct {
		node []any
		addr string // "" for none
	}{
		"an address":                  {node("10.0.0.1"), "10.0.0.1:7001"},
		"without metadata, as in 6":   {node("10.0.0.1")[:3], "10.0.0.1:7001"},
		"a name":                      {node("db.example", "ip", "10.0.0.1"), "db.example:7001"},
		"IPv6":                        {node("fd00::1"), "[fd00::1]:7001"},
		"null: unknown endpoint":      {node(nil, "ip", "10.0.0.1"), "10.0.0.9:7001"},
		"empty: own endpoint unknown": {node(""), "10.0.0.9:7001"},
		"? and its address":           {node("?", "ip", "10.0.0.1"), "10.0.0.1:7001"},
		"? only":                      {node("?"), ""},
		"?, and an unknown address":   {node("?", "ip", ""), ""},
	} {
		got, err := parseSlotMap([]any{[]any{int64(0), int64(16383), test.node}}, "10.0.0.9:7000")
		var want []ownedSlots
		if test.addr != "" {
			want = []ownedSlots{{slotRange{0, 16383}, test.addr}}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(ownedSlots{}, slotRange{})); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	for _, reply := range []any{
		"OK", []any{"x"}, []any{[]any{int64(0)}}, []any{[]any{int64(0), int64(16384), node("a")}}, []any{[]any{int64(-1), int64(1), node("a")}},
		[]any{[]any{int64(0), int64(1), []any{"a"}}},
		[]any{[]any{int64(0), int64(1), []any{int64(1), int64(2)}}}, []any{[]any{"0", "1", node("a")}},
	} {
		if got, err := parseSlotMap(reply, "10.0.0.9:7000"); err == nil {
			t.Errorf("%v is understood as %v", reply, got)
		}
	}
	if got, err := parseSlotMap([]any{[]any{int64(0), int64(16383)}}, "a:1"); err != nil || len(got) > 0 {
		t.Errorf("slots without a node: %v, %v", got, err)
	}
}

func TestRedirect(t *testing.T) {
	for text, want := range map[string]string{
		"MOVED 7 10.0.0.2:6379": "10.0.0.2:6379",
		"ASK 7 10.0.0.2:6379":   "10.0.0.2:6379",
		"MOVED 7 :7001":         "10.0.0.1:7001",
		"ASK 7 :7001":           "10.0.0.1:7001",
		"MOVED 7 fd00::2:7001":  "[fd00::2]:7001",
		"MOVED 7 [fd00::2]:70":  "[fd00::2]:70",
		"MOVED 7 db.example:70": "db.example:70",
		"MOVED 7 ?:7001":        "",
		"MOVED 7 nowhere":       "",
		"MOVED 16384 :7001":     "",
		"ERR no":                "",
	} {
		r := &router{stale: make(chan struct{}, 1)}
		r.nodes.Store(new([]string))
		node, _, ok := r.followRedirect([]byte(text), "10.0.0.1:6379")
		got := ""
		if ok {
			got = (*r.nodes.Load())[node]
		}
		if got != want {
			t.Errorf("%s leads to %q, want %q", text, got, want)
		}
	}
}

// A response to a request from before a redirect does not override it; a later one does.
func TestRedirectOverridesOlderSlotMap(t *testing.T) {
	const left, heir = "10.0.0.1:6379", "10.0.0.2:6379"
	r := &router{stale: make(chan struct{}, 1)}
	r.nodes.Store(new([]string))
	owner := func(slot int) string { return (*r.nodes.Load())[r.owner[slot].Load()] }
	all := func(addr string) []ownedSlots { return []ownedSlots{{slotRange{0, slots - 1}, addr}} }
	asked := r.question.Add(1)
	if _, _, ok := r.followRedirect([]byte("MOVED 7 "+heir), left); !ok {
		t.Fatal("the redirect was not parsed")
	}
	r.applySlotMap(all(left), asked)
	if owner(7) != heir || owner(8) != left {
		t.Errorf("after the older answer, slot 7 belongs to %s, want %s; slot 8 to %s, want %s", owner(7), heir, owner(8), left)
	}
	r.applySlotMap(all(left), r.question.Add(1))
	if owner(7) != left {
		t.Errorf("after a newer answer, slot 7 belongs to %s, want %s", owner(7), left)
	}
}
