package hydra

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"skerry/internal/base/bearer"
	"skerry/systems/consensus"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/cloudsql"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

// patience is the timeout for conditions that must become true.
const patience = 30 * time.Second

// member is a node with its API on an in-memory log.
type member struct {
	*Node
	log    *memLog
	store  *cloudsql.Store
	client *hydraclient.Client
	url    string
	path   string
	stop   func()
}

// startMember starts a member of a cloud; path is its database file, "" for a new one.
func startMember(t *testing.T, shared *sharedLog, name, cloud, path string, tokens *bearer.Tokens, change ...func(*Options)) *member {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "hydra.db")
	}
	s, err := cloudsql.Open(t.Context(), cloudsql.Config{URL: "sqlite:" + path, Cluster: "test", Readers: 2, Outcomes: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	transport := &http.Transport{}
	address := server.Listener.Addr().String()
	l := shared.member(consensus.Member{ID: MemberID(name), Name: name, Site: cloud, API: address, Role: consensus.Voter})
	o := Options{Cluster: "test", Name: name, Cloud: cloud, API: address, Transport: transport, Token: tokens.TokenFor(bearer.Read)}
	for _, f := range change {
		f(&o)
	}
	n := NewNode(o, s)
	l.node = n
	server.Config.Handler = api.New(api.Config{Backend: n, Member: name, Forward: transport, Tokens: tokens, Timeout: patience})
	if err := n.Start(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	server.Start()
	c, err := hydraclient.New(hydraclient.Config{Endpoints: []string{address}, Token: tokens.TokenFor(bearer.Admin), Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Node: n, log: l, store: s, client: c, url: "http://" + address, path: path}
	stopped := false
	m.stop = func() {
		if stopped {
			return
		}
		stopped = true
		n.Release()
		server.Close()
		n.Stop()
		transport.CloseIdleConnections()
		if err := errors.Join(c.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(m.stop)
	return m
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timeout waiting until %s: %v", what, patience)
		}
	}
}

// hold withholds all further entries from the members' databases.
func hold(held ...*member) {
	for _, m := range held {
		m.log.hold()
	}
}

func TestAcknowledgements(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a, b := startMember(t, shared, "a", "east", "", nil), startMember(t, shared, "b", "west", "", nil)
	if err := a.client.CreateTable(ctx, "accounts", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	hold(a, b)
	w, err := a.client.Put(ctx, "accounts", "ada", map[string]int{"n": 1})
	if err != nil || w.Ack != api.Committed {
		t.Fatalf("a write while no database applies entries: %+v, %v", w, err)
	}
	var meta hydraclient.Meta
	if _, err := a.client.Get(ctx, "accounts", "ada", hydraclient.Read(api.Local), hydraclient.WithMeta(&meta)); !errors.Is(err,
		hydraclient.ErrNotFound) {
		t.Errorf("a local read of an unapplied write: %v", err)
	}
	if s, err := a.client.Status(ctx); err != nil || s.Databases[0].Lag == 0 || s.Commit < w.Version {
		t.Errorf("status %+v, %v", s, err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	_, err = a.client.Get(short, "accounts", "ada")
	cancel()
	if !errors.Is(err, hydraclient.ErrUnavailable) {
		t.Errorf("a linearizable read of an unapplied write: %v, want a timeout", err)
	}
	a.log.release()
	row, err := a.client.Get(ctx, "accounts", "ada", hydraclient.WithMeta(&meta))
	if err != nil || row.Version != w.Version || meta.Applied < w.Version || meta.Cloud != "east" || meta.Member != "a" || meta.Staleness < 0 {
		t.Errorf("row %+v, %+v, %v", row, meta, err)
	}
	if w, err := a.client.Put(ctx, "accounts", "ada", map[string]int{"n": 2},
		hydraclient.Ack(api.Applied)); err != nil || w.Ack != api.Applied {
		t.Errorf("a write with ack=applied: %+v, %v", w, err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := a.client.Put(ctx, "accounts", "ada", map[string]int{"n": 3}, hydraclient.Ack(api.Everywhere))
		done <- err
	}()
	eventually(t, "the third write is applied here", func() bool {
		return a.progress.index() >= a.log.Commit() &&
			a.log.Commit() > row.Version+1
	})
	select {
	case err := <-done:
		t.Fatalf("a write with ack=everywhere while one database does not apply: %v", err)
	default:
	}
	b.log.release()
	if err := <-done; err != nil {
		t.Errorf("a write with ack=everywhere: %v", err)
	}
	if row, err := b.client.Get(ctx, "accounts", "ada", hydraclient.Read(api.Local)); err != nil || string(row.Value) != `{"n":3}` {
		t.Errorf("reading the row at the other member: %s, %v", row.Value, err)
	}
}

func TestBoundedStaleness(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a := startMember(t, shared, "a", "east", "", nil)
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the staleness of a is known", func() bool { return a.staleness() >= 0 })
	hold(a)
	if _, err := a.client.Put(ctx, "t", "k", map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	var meta hydraclient.Meta
	if _, err := a.client.Get(ctx, "t", "k", hydraclient.Staleness(time.Hour), hydraclient.WithMeta(&meta)); !errors.Is(err,
		hydraclient.ErrNotFound) {
		t.Errorf("a read with a bound of one hour: %v", err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := a.client.Get(ctx, "t", "k", hydraclient.Staleness(0))
		read <- err
	}()
	eventually(t, "somebody waits", a.progress.hasWaiters)
	a.log.release()
	if err := <-read; err != nil {
		t.Errorf("a read with the smallest bound: %v", err)
	}
}

func TestTransactions(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a, b := startMember(t, shared, "a", "east", "", nil), startMember(t, shared, "b", "west", "", nil)
	if err := a.client.CreateTable(ctx, "accounts"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"ada", "bob"} {
		if _, err := a.client.Put(ctx, "accounts", key, map[string]int{"balance": 10}); err != nil {
			t.Fatal(err)
		}
	}
	transfer := api.Transaction{
		Checks: []api.Check{{Table: "accounts", Key: "ada", Is: command.GreaterOrEqual, Field: "balance", Value: json.RawMessage("7")}},
		Writes: []api.Write{
			{Do: command.Add, Table: "accounts", Key: "ada", Value: json.RawMessage(`{"balance":-7}`)},
			{Do: command.Add, Table: "accounts", Key: "bob", Value: json.RawMessage(`{"balance":7}`)},
		},
	}
	first, err := a.client.Transact(ctx, transfer, hydraclient.RequestID("one"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.client.Transact(ctx, transfer, hydraclient.RequestID("one"))
	if err != nil || again.Version != first.Version {
		t.Errorf("repeating the transaction at the other member: %+v, %v; want version %d", again, err, first.Version)
	}
	_, err = b.client.Transact(ctx, transfer)
	var answer *hydraclient.Error
	if !errors.Is(err, hydraclient.ErrCheckFailed) || !errors.As(err, &answer) || answer.Status != http.StatusConflict || *answer.Failed != 0 {
		t.Errorf("a transfer without sufficient balance: %v", err)
	}
	for _, m := range []*member{a, b} {
		if row, err := m.client.Get(ctx, "accounts", "bob"); err != nil || string(row.Value) != `{"balance":17}` {
			t.Errorf("bob: %s, %v", row.Value, err)
		}
	}
	row, err := a.client.Get(ctx, "accounts", "ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Transact(ctx, api.Transaction{
		Checks: []api.Check{{Table: "accounts", Key: "ada", Is: command.Version, Version: row.Version - 1}},
		Writes: []api.Write{{Do: command.Put, Table: "accounts", Key: "ada", Value: json.RawMessage("{}")}},
	}); !errors.Is(err, hydraclient.ErrCheckFailed) {
		t.Errorf("a check for an outdated version: %v", err)
	}
	if _, err := a.client.Merge(ctx, "accounts", "nobody", map[string]int{"a": 1}); !errors.Is(err, hydraclient.ErrNotFound) {
		t.Errorf("merge into a missing row: %v", err)
	}
	if _, err := a.client.Delete(ctx, "accounts", "ada"); err != nil {
		t.Error(err)
	}
	if _, err := a.client.Delete(ctx, "accounts", "ada"); !errors.Is(err, hydraclient.ErrNotFound) {
		t.Errorf("delete of a missing row: %v", err)
	}
	for _, key := range []string{".", "..", "a/b", "a b?c#d%", "'; DROP TABLE accounts; --", "\u00e9\u2028"} {
		if _, err := a.client.Put(ctx, "accounts", key, map[string]string{"key": key}); err != nil {
			t.Errorf("key %q: %v", key, err)
			continue
		}
		row, err := a.client.Get(ctx, "accounts", key)
		var value map[string]string
		if err != nil || json.Unmarshal(row.Value, &value) != nil || value["key"] != key || row.Key != key {
			t.Errorf("key %q: %+v, %v", key, row, err)
		}
	}
	page, err := a.client.Scan(ctx, "accounts", hydraclient.Page{Limit: 3})
	if err != nil || len(page.Rows) != 3 || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	rest, err := a.client.Scan(ctx, "accounts", hydraclient.Page{After: page.Next})
	if n, _ := a.client.Count(ctx, "accounts"); err != nil || int64(len(rest.Rows)+3) != n || rest.Next != "" {
		t.Errorf("%d rows on the second page of %d, %v", len(rest.Rows), n, err)
	}
	if got, err := a.client.Scan(ctx, "accounts", hydraclient.Page{Prefix: "a"}); err != nil || len(got.Rows) != 2 {
		t.Errorf("with prefix a: %+v, %v", got.Rows, err)
	}
	if names, err := a.client.Tables(ctx); err != nil || len(names) != 1 {
		t.Errorf("tables %v, %v", names, err)
	}
}

func TestDatabaseRebuilt(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a := startMember(t, shared, "a", "east", "", nil)
	if err := a.client.CreateTable(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if _, err := a.client.Put(ctx, "t", fmt.Sprint("k", i), map[string]int{"n": i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.progress.wait(ctx, a.log.Commit()); err != nil {
		t.Fatal(err)
	}
	shared.compact(a.log.Commit())
	b := startMember(t, shared, "b", "west", "", nil) // its database is empty
	eventually(t, "the database is rebuilt", func() bool { return b.checkServing() == nil })
	if n, err := b.client.Count(ctx, "t", hydraclient.Read(api.Local)); err != nil || n != 200 {
		t.Errorf("%d rows, %v", n, err)
	}
	if _, err := b.client.Put(ctx, "t", "new", map[string]int{}, hydraclient.Ack(api.Everywhere)); err != nil {
		t.Error(err)
	}
}

// TestDatabaseDown breaks the database of one cloud. The log continues, the other cloud serves its requests, and
// the database catches up afterwards.
func TestDatabaseDown(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a, b := startMember(t, shared, "a", "east", "", nil), startMember(t, shared, "b", "west", "", nil)
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b knows a", func() bool { _, ok := b.findSubstitute(); return ok })
	operator, err := sql.Open("sqlite", "file:"+b.path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	if _, err := operator.ExecContext(ctx, "ALTER TABLE hydra_meta RENAME TO elsewhere"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.client.Put(ctx, "t", "k", map[string]int{"n": 1}); err != nil {
		t.Errorf("a write acknowledged without the database: %v", err)
	}
	eventually(t, "b reports a problem", func() bool { return b.problem.Load() != nil })
	var meta hydraclient.Meta
	if row, err := b.client.Get(ctx, "t", "k", hydraclient.WithMeta(&meta)); err != nil || string(row.Value) != `{"n":1}` ||
		meta.Forwarded != "b" || meta.Cloud != "east" {
		t.Errorf("a read in the cloud without a database: %s, %+v, %v", row.Value, meta, err)
	}
	if _, err := b.client.Merge(ctx, "t", "k", map[string]int{"m": 2}); err != nil {
		t.Errorf("a transaction in that cloud: %v", err)
	}
	if _, err := b.client.Merge(ctx, "t", "none", map[string]int{"m": 2}); !errors.Is(err, hydraclient.ErrNotFound) {
		t.Errorf("a merge into a missing row in that cloud: %v", err)
	}
	if err := b.client.Ready(ctx); !errors.Is(err, hydraclient.ErrUnavailable) {
		t.Errorf("b reports ready: %v", err)
	}
	s, err := b.client.Status(ctx)
	if err != nil || s.Problem == "" || s.Databases[1].State != api.StateDown {
		t.Errorf("status %+v, %v", s, err)
	}
	if _, err := operator.ExecContext(ctx, "ALTER TABLE elsewhere RENAME TO hydra_meta"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b serves again", func() bool { return b.checkServing() == nil })
	if row, err := b.client.Get(ctx, "t", "k", hydraclient.WithMeta(&meta)); err != nil || string(row.Value) != `{"n":1,"m":2}` ||
		meta.Forwarded != "" {
		t.Errorf("a read after the recovery: %s, %+v, %v", row.Value, meta, err)
	}
}

// TestSharedDatabase runs two members of a cloud on one database. One of them applies entries; when it stops, the
// other takes over.
func TestSharedDatabase(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a := startMember(t, shared, "a", "east", "", nil)
	b := startMember(t, shared, "b", "east", a.path, nil)
	if err := b.client.CreateTable(ctx, "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	add := api.Transaction{Writes: []api.Write{{Do: command.Add, Table: "t", Key: "k", Value: json.RawMessage(`{"n":1}`)}}}
	for i := range 40 {
		if i == 20 {
			a.stop()
		}
		m := b
		if i%2 == 0 && i < 20 {
			m = a
		}
		if _, err := m.client.Transact(ctx, add); err != nil {
			t.Fatal(err)
		}
	}
	if row, err := b.client.Get(ctx, "t", "k"); err != nil || string(row.Value) != `{"n":40}` {
		t.Errorf("%s, %v", row.Value, err)
	}
}

// TestMovedInterface starts a member whose interface the list of members does not name, gives it another peer address,
// and restarts it with its interface elsewhere. The membership must follow the interface and keep the peer address.
func TestMovedInterface(t *testing.T) {
	const peer, moved = "127.0.0.1:0", "moved.example:7071"
	ctx := t.Context()
	c := Config{Cluster: "test", Name: "a", Cloud: "east", Listen: "127.0.0.1:0", Peer: peer, Data: t.TempDir(),
		Members: []MemberConfig{{Name: "a", Cloud: "east", Peer: peer}}}
	for i, want := range []api.Member{{API: "one.example:7070", Peer: peer}, {API: "two.example:7070", Peer: moved}} {
		c.Advertise = want.API
		s, err := Open(ctx, c, "test", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.WithoutCancel(ctx)) })
		eventually(t, "the membership has the interface "+want.API, func() bool {
			m := s.raft.Self() // the configured peer address replaces that of the log in a status
			return m.API == want.API && m.Addr == want.Peer
		})
		if i == 0 {
			if _, err := s.node.AddMember(ctx, api.Member{Name: "a", Cloud: "east", Peer: moved}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
