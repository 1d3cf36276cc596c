package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// startPlain starts a server without a cluster.
func startPlain(t testing.TB, d *Redis) map[string]string {
	t.Helper()
	testkit.Need(t, testkit.Installed(Recipe))
	in, err := d.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	h := testhost.Loopback(t, 1)[0]
	p, err := h.Start(t.Context(), host.Command{Name: "redis", Path: in.Programs["redis-server"], Env: in.Env, Dir: h.Dir(),
		Args: []string{"--bind", h.Addr(), "--save", "", "--protected-mode", "no", "--requirepass", "secret"}, Log: filepath.Join(h.Dir(), "log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	for {
		c, err := net.Dial("tcp", h.Addr()+":6379")
		if err == nil {
			c.Close()
			return map[string]string{PropHost: h.Addr(), PropPassword: "secret"}
		}
		select {
		case <-p.Done():
			t.Fatal(p.Tail(10))
		case <-time.After(pollInterval):
		}
	}
}

func TestRecords(t *testing.T) {
	d := New()
	cluster := startCluster(t, d, testhost.Loopback(t, 3), nil)
	for name, properties := range map[string]map[string]string{"cluster": cluster.Properties(), "plain": startPlain(t, d)} {
		for _, scan := range []string{"true", "false"} {
			t.Run(name+"/scan="+scan, func(t *testing.T) {
				c := open(t, d, properties, PropScan, scan)
				checkRecords(t, c)
				if _, err := c.Scan(t.Context(), "", "", 1, nil, nil); errors.Is(err, load.ErrUnsupported) != (scan == "false") {
					t.Errorf("scan: %v", err)
				}
			})
		}
	}
}

// sameBytes compares values at once; cmp would compare them byte by byte.
var sameBytes = cmp.Comparer(bytes.Equal)

func checkRecords(t *testing.T, c load.Client) {
	ctx := t.Context()
	for i := range 50 {
		key := "user" + strconv.Itoa(i)
		big := make([]byte, 100_000)
		want := []load.Field{{Name: "field0", Value: []byte("\r\n$1\r\n")}, {Name: "field1", Value: []byte{}}, {Name: "field2", Value: big}}
		if _, err := c.Read(ctx, "t", key, nil, nil); !errors.Is(err, load.ErrNotFound) {
			t.Fatalf("read of a missing record: %v", err)
		}
		if _, err := c.Read(ctx, "t", key, []string{"field0"}, nil); !errors.Is(err, load.ErrNotFound) {
			t.Fatalf("read of a field of a missing record: %v", err)
		}
		if err := c.Delete(ctx, "t", key); !errors.Is(err, load.ErrNotFound) {
			t.Fatalf("delete of a missing record: %v", err)
		}
		if err := c.Insert(ctx, "t", key, want); err != nil {
			t.Fatal(err)
		}
		got, err := c.Read(ctx, "t", key, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b load.Field) int { return int(a.Name[5]) - int(b.Name[5]) })
		if diff := cmp.Diff(want, got, sameBytes); diff != "" {
			t.Fatal(diff)
		}
		if err := c.Update(ctx, "t", key, []load.Field{{Name: "field1", Value: []byte("new")}}); err != nil {
			t.Fatal(err)
		}
		got, err = c.Read(ctx, "t", key, []string{"field1", "nofield", "field0"}, got[:0])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]load.Field{{Name: "field1", Value: []byte("new")}, want[0]}, got, sameBytes); diff != "" {
			t.Fatal(diff)
		}
		if err := c.Delete(ctx, "t", key); err != nil {
			t.Fatal(err)
		}
	}
}

// Scans agree with a sorted list while records are added and removed.
func TestScanModel(t *testing.T) {
	d := New()
	c := startCluster(t, d, testhost.Loopback(t, 5), nil)
	client := open(t, d, c.Properties(), PropScan, "true")
	ctx, random := t.Context(), rand.New(rand.NewPCG(1, 2))
	model := make(map[string]string)
	check := func(start string, count int, fields []string) {
		t.Helper()
		var want []string
		for _, k := range slices.Sorted(maps.Keys(model)) {
			if k >= start && len(want) < count {
				want = append(want, k+"="+model[k])
			}
		}
		var got []string
		n, err := client.Scan(ctx, "t", start, count, fields, func(key string, f []load.Field) {
			got = append(got, key+"="+string(f[0].Value))
		})
		if err != nil || n != len(got) {
			t.Fatalf("scan of %d from %q saw %d, %v", n, start, len(got), err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("scan of %d from %q: %s", count, start, diff)
		}
	}
	check("", 10, nil)
	for i := range 1500 {
		key := fmt.Sprintf("user%d", random.IntN(700))
		if _, there := model[key]; there && random.IntN(3) == 0 {
			delete(model, key)
			if err := client.Delete(ctx, "t", key); err != nil {
				t.Fatal(err)
			}
		} else {
			model[key] = strconv.Itoa(i)
			if err := client.Insert(ctx, "t", key, record(model[key], "x")); err != nil {
				t.Fatal(err)
			}
		}
		if i%10 == 0 {
			check(fmt.Sprintf("user%d", random.IntN(700)), random.IntN(100), []string{"field0"})
		}
	}
	check("", 1000, nil)
	check("user5", 1, nil)
	check("zzz", 10, nil)
	check("", 0, nil)

	// All keys are in one part of the index: the first request returns too few and must be repeated.
	for i, n := 0, 0; n < 200; i++ {
		key := fmt.Sprintf("v%06d", i)
		if slotOf(key)/groupSlots == 7 {
			model[key] = "v"
			if err := client.Insert(ctx, "t", key, record("v")); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	check("v", 150, nil)
	// Entries without records are skipped.
	for i := range 40 {
		delete(model, fmt.Sprint("user", i))
		raw := open(t, d, c.Properties(), PropScan, "false")
		if err := raw.Delete(ctx, "t", fmt.Sprint("user", i)); err != nil && !errors.Is(err, load.ErrNotFound) {
			t.Fatal(err)
		}
	}
	check("", 2000, nil)
	check("user1", 20, nil)
	if n, err := c.Count(ctx); err != nil || n != int64(len(model)) {
		t.Errorf("count %d, %v; want %d", n, err, len(model))
	}
}

// A cluster is resized under load: no operation may fail and no row may be lost.
func TestJoinAndLeave(t *testing.T) {
	d := New()
	nodes := testhost.Loopback(t, 4)
	c := startCluster(t, d, nodes[:3], nil)
	ctx := t.Context()
	loader := open(t, d, c.Properties(), PropScan, "true")
	const rows = 1500
	key := func(i int) string { return fmt.Sprintf("user%05d", i) }
	for i := range rows {
		if err := loader.Insert(ctx, "t", key(i), record(strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}

	stop := make(chan struct{})
	var workers sync.WaitGroup
	work := func(f func(c *client, r *rand.Rand) error) {
		client, r := open(t, d, c.Properties(), PropScan, "true"), rand.New(rand.NewPCG(3, 4))
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := f(client, r); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work(func(c *client, r *rand.Rand) error {
		i := r.IntN(rows)
		f, err := c.Read(ctx, "t", key(i), nil, nil)
		if err == nil && string(f[0].Value) != strconv.Itoa(i) {
			err = fmt.Errorf("read %q of record %d", f[0].Value, i)
		}
		return err
	})
	work(func(c *client, r *rand.Rand) error { // the table's records and its own comings and goings
		k := key(rows + r.IntN(100))
		if err := c.Insert(ctx, "t", k, record("x")); err != nil {
			return err
		}
		return c.Delete(ctx, "t", k)
	})
	work(func(c *client, r *rand.Rand) error {
		from, count, next := r.IntN(rows), 1+r.IntN(100), 0
		next = from
		n, err := c.Scan(ctx, "t", key(from), count, nil, func(k string, _ []load.Field) {
			if next < rows && k != key(next) {
				t.Errorf("scan from %d returned %s, want %s", from, k, key(next))
			}
			next++
		})
		if err == nil && n < min(count, rows-from) {
			err = fmt.Errorf("scan of %d from %d returned %d", count, from, n)
		}
		return err
	})

	if _, err := c.Leave(ctx, nodes[1], database.Graceful); !errors.Is(err, database.ErrFixed) {
		t.Errorf("one of three masters was allowed to leave: %v", err)
	}
	if _, err := c.Leave(ctx, nodes[3], database.Graceful); !errors.Is(err, database.ErrNotMember) {
		t.Errorf("leave of a non-member: %v", err)
	}
	joined, err := c.Join(ctx, nodes[3])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Join(ctx, nodes[3]); !errors.Is(err, database.ErrMember) {
		t.Errorf("join of a member: %v", err)
	}
	members, err := c.Members(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(members) != 4 || members[3].Share < 0.24 || members[3].Share > 0.26 || members[3].Rows < rows/8 {
		t.Errorf("after the join: %+v", members)
	}
	left, err := c.Leave(ctx, nodes[0], database.Graceful)
	if err != nil {
		t.Fatal(err)
	}
	if running(nodes[0]) {
		t.Error("the server of the removed member is still running")
	}
	again, err := c.Join(ctx, nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]struct{ accepted, complete time.Duration }{
		"join": {joined.Accepted, joined.Complete}, "leave": {left.Accepted, left.Complete}, "join again": {again.Accepted, again.Complete},
	} {
		t.Logf("%s accepted after %v, complete after %v", what, change.accepted, change.complete)
		if change.accepted <= 0 || change.complete <= change.accepted {
			t.Errorf("%s was accepted after %v and complete after %v", what, change.accepted, change.complete)
		}
	}
	close(stop)
	workers.Wait()
	if n, err := c.Count(ctx); err != nil || n != rows {
		t.Errorf("count %d, %v; want %d", n, err, rows)
	}
	select {
	case <-c.Failed():
		t.Errorf("a leave counts as a failure: %v", c.Err())
	default:
	}
}

// server greets go-redis and answers every other request with the same bytes, or hangs up without bytes. PORT in them
// is its own.
func server(t testing.TB, answer string) map[string]string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	answer = strings.ReplaceAll(answer, "PORT", port)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				serve(conn, answer)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return map[string]string{PropHost: "127.0.0.1", PropPort: port, PropCluster: "false"}
}

func serve(conn net.Conn, answer string) {
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		text := answer
		switch words := buf[:n]; { // go-redis writes commands in lower case
		case bytes.Contains(words, []byte("\r\nping\r\n")):
			text = "+PONG\r\n"
		case bytes.Contains(words, []byte("\r\nhello\r\n")):
			text = "-ERR unknown command\r\n"
		}
		if text == "" {
			return
		}
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
	}
}

// Operations that certainly had no effect are distinguished from those that may have had one.
func TestOperationOutcomes(t *testing.T) {
	for _, test := range []struct {
		name, reply string
		class       string
		outcome     load.Outcome
	}{
		{"no answer", "+", "timeout", load.InDoubt},
		{"closed", "", "eof", load.InDoubt},
		{"nonsense", "hello\r\n", "protocol", load.InDoubt},
		{"loading", "-LOADING Redis is loading\r\n", "loading", load.NotDone},
		{"redirected endlessly", "-MOVED 1 :PORT\r\n", "moved", load.NotDone},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := open(t, New(), server(t, test.reply))
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			err := c.Update(ctx, "t", "user1", record("x"))
			var e *load.OpError
			if !errors.As(err, &e) || e.Class != test.class || e.Outcome != test.outcome || e.Node == "" {
				t.Errorf("error %#v, want class %s, outcome %d", err, test.class, test.outcome)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		c := open(t, New(), server(t, "+"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		var e *load.OpError
		if err := c.Update(ctx, "t", "user1", record("x")); !errors.As(err, &e) || e.Class != "canceled" || e.Outcome != load.InDoubt {
			t.Errorf("error %v", err)
		}
		if err := c.Update(ctx, "t", "user1", record("x")); !errors.As(err, &e) || e.Class != "canceled" || e.Outcome != load.NotDone {
			t.Errorf("an operation after Close: error %v", err)
		}
	})
	t.Run("wrong password", func(t *testing.T) {
		d := New()
		p := startPlain(t, d)
		p[PropPassword] = "wrong"
		if _, err := d.Open(t.Context(), p); err == nil {
			t.Error("no error")
		}
	})
	t.Run("no server", func(t *testing.T) {
		h := testhost.Loopback(t, 1)[0]
		if _, err := New().Open(t.Context(), map[string]string{PropHost: h.Addr()}); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("error %v", err)
		}
	})
}

// The node that served a slot refuses connections, as after it has left the cluster: another node is tried, once.
func TestRefusedConnectionIsRedirected(t *testing.T) {
	gone := net.JoinHostPort(testhost.Loopback(t, 1)[0].Addr(), "6379") // no server listens there
	for _, test := range []struct {
		name, reply, class string
	}{
		{"another node serves the slot", ":1\r\n", ""},
		{"another node still names the old owner", "-MOVED 1 " + gone + "\r\n", "refused"},
		{"another node has no answer", "-CLUSTERDOWN The cluster is down\r\n", "clusterdown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := open(t, New(), server(t, test.reply))
			c.owner[slotOf("user1")].Store(c.nodeNumber(gone))
			err := c.Update(t.Context(), "t", "user1", record("x"))
			if test.class == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *load.OpError
			if !errors.As(err, &e) || e.Class != test.class || e.Outcome != load.NotDone {
				t.Errorf("error %v, want class %s, not done", err, test.class)
			}
		})
	}
	t.Run("a client of one node", func(t *testing.T) {
		c := open(t, New(), server(t, ":1\r\n"))
		c.owner[slotOf("user1")].Store(c.nodeNumber(gone))
		c.alone = true
		if err := c.Update(t.Context(), "t", "user1", record("x")); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("error %v", err)
		}
	})
}

// BenchmarkRead measures the cost of a read in addition to the server, including allocations.
func BenchmarkRead(b *testing.B) {
	reply := "*20\r\n"
	for i := range 10 {
		reply += fmt.Sprintf("$6\r\nfield%d\r\n$100\r\n%0100d\r\n", i, i)
	}
	c, err := New().Open(b.Context(), server(b, reply))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	var dst []load.Field
	b.ReportAllocs()
	for b.Loop() {
		if dst, err = c.Read(b.Context(), "t", "user6284781860667377211", nil, dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
