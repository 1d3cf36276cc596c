package hydraclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"skerry/internal/base/bearer"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

// rows is a member that stores rows in memory. Its other methods are never called.
type rows struct {
	api.Backend
	quick bool
	hold  chan struct{} // writes wait until it is closed; nil: they do not wait
	began atomic.Int64  // writes

	mu     sync.Mutex
	values map[string]string
	last   uint64
	err    error // returned by every operation
}

func (r *rows) Quick(api.Consistency) bool { return r.quick }

func (r *rows) Get(_ context.Context, table, key string, w api.Consistency) (api.Row, api.Freshness, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := api.Freshness{Cloud: "aws", Applied: r.last, Lag: 3, Staleness: w.Staleness}
	v, ok := r.values[table+"/"+key]
	switch {
	case r.err != nil:
		return api.Row{}, f, r.err
	case !ok:
		return api.Row{}, f, api.Problemf(api.CodeNotFound, "there is no row %q in %s", key, table)
	}
	return api.Row{Key: key, Version: r.last, Value: json.RawMessage(v)}, f, nil
}

func (r *rows) Write(ctx context.Context, t *api.Transaction, a api.Ack) (api.Written, error) {
	r.began.Add(1)
	if r.hold != nil {
		select {
		case <-r.hold:
		case <-ctx.Done():
			return api.Written{}, ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return api.Written{}, r.err
	}
	for i, c := range t.Checks {
		if _, ok := r.values[c.Table+"/"+c.Key]; c.Is == command.Absent && ok || c.Is == command.Exists && !ok {
			return api.Written{}, &api.Problem{Code: api.CodeCheckFailed, Message: "it does not hold", Failed: &i}
		}
	}
	r.last++
	for _, w := range t.Writes {
		r.values[w.Table+"/"+w.Key] = string(w.Value)
	}
	return api.Written{Version: r.last, Ack: a}, nil
}

// member serves a backend.
func member(t *testing.T, r *rows, c api.Config) (addr string, s *api.Server, h *http.Server) {
	t.Helper()
	if r.values == nil {
		r.values = map[string]string{}
	}
	c.Backend, c.Member = r, "m1"
	s = api.New(c)
	h = s.HTTP(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	t.Cleanup(func() { h.Close(); <-served; s.Close(t.Context()) })
	return l.Addr().String(), s, h
}

func open(t *testing.T, c hydraclient.Config) *hydraclient.Client {
	t.Helper()
	got, err := hydraclient.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { got.Close() })
	return got
}

// tale runs a few operations and returns what the client observes, one line each.
func tale(t *testing.T, c *hydraclient.Client) (lines []string) {
	ctx := t.Context()
	say := func(what string, v any, m hydraclient.Meta, err error) {
		var e *hydraclient.Error
		status := 0
		if errors.As(err, &e) {
			status = e.Status
		}
		var is []string
		for _, s := range []error{hydraclient.ErrNotFound, hydraclient.ErrCheckFailed, hydraclient.ErrBadRequest,
			hydraclient.ErrInDoubt, hydraclient.ErrUnavailable, hydraclient.ErrUnauthorized} {
			if errors.Is(err, s) {
				is = append(is, s.Error())
			}
		}
		lines = append(lines, fmt.Sprintf("%s: %+v %+v %d %v", what, v, m, status, is))
	}
	for _, read := range []hydraclient.Option{hydraclient.Read(api.Local), hydraclient.Read(api.Linearizable),
		hydraclient.Staleness(20 * time.Millisecond)} {
		var m hydraclient.Meta
		row, err := c.Get(ctx, "t", "none", read, hydraclient.WithMeta(&m))
		say("get none", row, hydraclient.Meta{Member: m.Member}, err)
		w, err := c.Put(ctx, "t", "k/ä ", json.RawMessage(`{ "v": 1 }`), hydraclient.Ack(api.Everywhere))
		say("put", w, m, err)
		row, err = c.Get(ctx, "t", "k/ä ", read, hydraclient.WithMeta(&m))
		say("get", string(row.Value)+row.Key, m, err)
		if row.Version != w.Version {
			t.Errorf("got version %d of a row written at version %d", row.Version, w.Version)
		}
	}
	w, err := c.Transact(ctx, api.Transaction{RequestID: "r1", Checks: []api.Check{{Table: "t", Key: "k/ä ",
		Is: command.Absent}}, Writes: []api.Write{{Do: command.Put, Table: "t", Key: "x", Value: json.RawMessage(`{}`)}}})
	say("transact", w, hydraclient.Meta{}, err)
	for _, key := range []string{"none", "k/ä "} {
		w, err = c.Merge(ctx, "t", key, map[string]int{"v": 3})
		say("merge", w, hydraclient.Meta{}, err)
		w, err = c.Delete(ctx, "t", key)
		say("delete", w, hydraclient.Meta{}, err)
	}
	_, err = c.Merge(ctx, "t", "k", json.RawMessage(`[`))
	say("bad merge", "", hydraclient.Meta{}, err)
	_, err = c.Put(ctx, "NO TABLE", "k", json.RawMessage(`{}`))
	say("bad table", "", hydraclient.Meta{}, err)
	_, err = c.Put(ctx, "t", "k", json.RawMessage(`[`))
	say("bad value", "", hydraclient.Meta{}, err)
	_, err = c.Get(ctx, "NO TABLE", "k")
	say("get of a bad table", "", hydraclient.Meta{}, err)
	_, err = c.Transact(ctx, api.Transaction{Writes: []api.Write{{Do: "nonsense", Table: "t", Key: "k"}}})
	say("bad write", "", hydraclient.Meta{}, err)
	return lines
}

// TestStreamMatchesHTTP checks that a stream and HTTP give the same results, with and without in-order reads at the
// member, and that an endpoint without streams does, too.
func TestStreamMatchesHTTP(t *testing.T) {
	plain, _, _ := member(t, &rows{}, api.Config{})
	want := tale(t, open(t, hydraclient.Config{Endpoints: []string{plain}}))
	for name, quick := range map[string]bool{"quick": true, "slow": false} {
		addr, _, _ := member(t, &rows{quick: quick}, api.Config{})
		if got := tale(t, open(t, hydraclient.Config{Endpoints: []string{addr}, Streams: 2})); strings.Join(got,
			"\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwith HTTP:\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	backend := &rows{values: map[string]string{}}
	s := api.New(api.Config{Backend: backend, Member: "m1"})
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Upgrade")
		r.Header.Del("Connection")
		s.ServeHTTP(w, r)
	}))
	defer balancer.Close()
	if got := tale(t, open(t, hydraclient.Config{Endpoints: []string{balancer.Listener.Addr().String()},
		Streams: 2})); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("without streams:\n%s\nwith HTTP:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestConcurrentRequestsOnOneStream checks that each of many goroutines gets its own response.
func TestConcurrentRequestsOnOneStream(t *testing.T) {
	addr, _, _ := member(t, &rows{quick: true}, api.Config{})
	c := open(t, hydraclient.Config{Endpoints: []string{addr}, Streams: 1})
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for j := range 50 {
				key, value := fmt.Sprintf("k%d", i), fmt.Sprintf(`{"v":%d}`, j)
				if _, err := c.Put(t.Context(), "t", key, json.RawMessage(value)); err != nil {
					t.Error(err)
				}
				if row, err := c.Get(t.Context(), "t", key); err != nil || string(row.Value) != value {
					t.Errorf("%s: got %s, want %s: %v", key, row.Value, value, err)
				}
			}
		})
	}
	all.Wait()
}

func TestStreamNeedsToken(t *testing.T) {
	const read, write = "11111111111111111111111111111111", "22222222222222222222222222222222"
	tokens, err := bearer.Parse([]byte("read " + read + "\nwrite " + write + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	addr, _, _ := member(t, &rows{quick: true}, api.Config{Tokens: tokens})
	for _, tt := range []struct {
		token    string
		get, put error
	}{
		{"", hydraclient.ErrUnauthorized, hydraclient.ErrUnauthorized},
		{"33333333333333333333333333333333", hydraclient.ErrUnauthorized, hydraclient.ErrUnauthorized},
		{read, hydraclient.ErrNotFound, hydraclient.ErrUnauthorized},
		{write, hydraclient.ErrNotFound, nil},
	} {
		c := open(t, hydraclient.Config{Endpoints: []string{addr}, Streams: 1, Token: tt.token})
		if _, err := c.Get(t.Context(), "t", "k"); !errors.Is(err, tt.get) {
			t.Errorf("token %q: a read: %v, want %v", tt.token, err, tt.get)
		}
		if _, err := c.Put(t.Context(), "t", "k", json.RawMessage(`{}`)); !errors.Is(err, tt.put) {
			t.Errorf("token %q: a write: %v, want %v", tt.token, err, tt.put)
		}
	}
}

// TestStreamElsewhere checks that a request that the member cannot serve is repeated over HTTP, where the member
// forwards it.
func TestStreamElsewhere(t *testing.T) {
	other := &rows{values: map[string]string{"t/k": `{"v":1}`}}
	there, _, _ := member(t, other, api.Config{})
	here := &rows{quick: true, err: &api.Elsewhere{Member: "m2", API: there, Why: errors.New("being rebuilt")}}
	addr, _, _ := member(t, here, api.Config{Forward: http.DefaultTransport})
	c := open(t, hydraclient.Config{Endpoints: []string{addr}, Streams: 1})
	var m hydraclient.Meta
	if row, err := c.Get(t.Context(), "t", "k", hydraclient.WithMeta(&m)); err != nil || string(row.Value) != `{"v":1}` || m.Forwarded == "" {
		t.Errorf("%s, %+v: %v", row.Value, m, err)
	}
	if _, err := c.Put(t.Context(), "t", "x", json.RawMessage(`{}`)); err != nil || other.began.Load() != 1 {
		t.Errorf("%d writes at the other member: %v", other.began.Load(), err)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting until %s", what)
		}
	}
}

// TestStreamEnds checks that a write is in doubt if its connection closes. A write that has not started and a read go
// to another endpoint.
func TestStreamEnds(t *testing.T) {
	slow := &rows{hold: make(chan struct{})}
	addr, s, h := member(t, slow, api.Config{})
	spare, _, _ := member(t, &rows{values: map[string]string{"t/k": `{"v":1}`}}, api.Config{})
	c := open(t, hydraclient.Config{Endpoints: []string{addr, spare}, Streams: 1})
	doubt := make(chan error)
	go func() {
		_, err := c.Put(t.Context(), "t", "k", json.RawMessage(`{}`))
		doubt <- err
	}()
	eventually(t, "the write has begun", func() bool { return slow.began.Load() > 0 })
	h.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.Close(ended)
	if err := <-doubt; !errors.Is(err, hydraclient.ErrInDoubt) {
		t.Errorf("a write whose member stopped: %v", err)
	}
	if row, err := c.Get(t.Context(), "t", "k"); err != nil || string(row.Value) != `{"v":1}` {
		t.Errorf("a read after the member stopped: %s, %v", row.Value, err)
	}
}

// TestStreamDrains checks that a stopping member completes the requests in flight.
func TestStreamDrains(t *testing.T) {
	slow := &rows{hold: make(chan struct{})}
	addr, s, h := member(t, slow, api.Config{})
	c := open(t, hydraclient.Config{Endpoints: []string{addr}, Streams: 1})
	answered := make(chan error)
	go func() {
		_, err := c.Put(t.Context(), "t", "k", json.RawMessage(`{}`))
		answered <- err
	}()
	eventually(t, "the write has begun", func() bool { return slow.began.Load() > 0 })
	closed := make(chan struct{})
	go func() {
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		s.Close(t.Context())
		close(closed)
	}()
	close(slow.hold)
	if err := <-answered; err != nil {
		t.Errorf("a write in flight: %v", err)
	}
	<-closed
	// A write is in doubt until the client has detected that the connection is closed.
	eventually(t, "a write after the stop fails as not done", func() bool {
		_, err := c.Put(t.Context(), "t", "k", json.RawMessage(`{}`))
		if err == nil {
			t.Error("a write after the stop succeeded")
		}
		return errors.Is(err, hydraclient.ErrUnavailable)
	})
	if n := slow.began.Load(); n != 1 {
		t.Errorf("%d writes were applied", n)
	}
}

func TestStreamCancel(t *testing.T) {
	slow := &rows{hold: make(chan struct{})}
	defer close(slow.hold)
	addr, _, _ := member(t, slow, api.Config{})
	c := open(t, hydraclient.Config{Endpoints: []string{addr}, Streams: 1})
	ctx, cancel := context.WithCancel(t.Context())
	gave := make(chan error)
	go func() {
		_, err := c.Put(ctx, "t", "k", json.RawMessage(`{}`))
		gave <- err
	}()
	eventually(t, "the write has begun", func() bool { return slow.began.Load() > 0 })
	cancel()
	if err := <-gave; !errors.Is(err, hydraclient.ErrInDoubt) {
		t.Errorf("a canceled write: %v", err)
	}
	if _, err := c.Get(t.Context(), "t", "none"); !errors.Is(err, hydraclient.ErrNotFound) {
		t.Errorf("a read on the same stream: %v", err)
	}
}

// TestStreamNonsense checks that an invalid frame closes the stream and has no other effect.
func TestStreamNonsense(t *testing.T) {
	addr, _, _ := member(t, &rows{}, api.Config{})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: "+
		"hydra-stream/1\r\n\r\n\x05\x00\x00\x00hello"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 101 ") || !strings.HasSuffix(string(got), "\r\n\r\n") {
		t.Errorf("%q: %v", got, err)
	}
}

// TestConcurrentConnect checks that requests sharing a connection that cannot be established wait for one attempt,
// each until its own deadline, and report that nothing was done.
func TestConcurrentConnect(t *testing.T) {
	var dials atomic.Int64
	stuck := func(ctx context.Context, _, _ string) (net.Conn, error) {
		dials.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c := open(t, hydraclient.Config{Endpoints: []string{"127.0.0.1:1"}, Streams: 1, Dial: stuck})
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := c.Put(short, "t", "k", json.RawMessage(`{}`)); !errors.Is(err, hydraclient.ErrUnavailable) || errors.Is(err,
				hydraclient.ErrInDoubt) {
				t.Errorf("error %v", err)
			}
		})
	}
	all.Wait()
	if n := dials.Load(); n != 1 {
		t.Errorf("%d connection attempts, want 1", n)
	}
}
