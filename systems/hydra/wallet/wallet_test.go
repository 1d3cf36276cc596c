package wallet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
)

// memory is an in-memory data layer that evaluates transactions as members do.
type memory struct {
	mu     sync.Mutex
	tables map[string]map[string]command.Row
	done   map[string]command.Outcome
	index  uint64
	// broken, if set, returns the error that the client sees after each transaction.
	broken func() error
	// lost makes linearizable reads fail, so that the wallet falls back to local reads.
	lost bool
	read int

	gets   int
	behind map[string]command.Row // accounts as local reads may return them
	log    []string               // keys of the applied orders
}

func newMemory() *memory {
	return &memory{tables: map[string]map[string]command.Row{}, done: map[string]command.Outcome{}}
}

func (m *memory) HasTable(t string) bool            { return m.tables[t] != nil }
func (m *memory) Row(t, k string) command.Row       { return m.tables[t][k] }
func (m *memory) SetRow(t, k string, r command.Row) { m.tables[t][k] = r }
func (m *memory) ClearTable(t string)               { m.tables[t] = map[string]command.Row{} }
func (m *memory) DropTable(t string)                { delete(m.tables, t) }

// state is the memory as transactions see it.
type state struct{ *memory }

func (s state) CreateTable(t string) { s.ClearTable(t) }

func (m *memory) CreateTable(_ context.Context, t string, _ ...hydraclient.Option) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tables[t] == nil {
		m.ClearTable(t)
	}
	return nil
}

func (m *memory) Transact(_ context.Context, t api.Transaction, _ ...hydraclient.Option) (api.Written, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := t.Normalize(); err != nil {
		return api.Written{}, err
	}
	m.index++
	out, again := m.done[t.RequestID]
	if !again {
		out = command.Evaluate(&t, m.index, state{m})
		if t.RequestID != "" && out.Code != command.UnknownTable {
			m.done[t.RequestID] = out
		}
		if out.Code == command.OK {
			order, _, _ := strings.Cut(t.RequestID, " ") // without the number of the attempt
			m.log = append(m.log, order)
		}
	}
	if m.broken != nil {
		if err := m.broken(); err != nil {
			return api.Written{}, err
		}
	}
	switch out.Code {
	case command.OK:
		return api.Written{Version: out.Version}, nil
	case command.UnknownTable:
		return api.Written{}, hydraclient.ErrUnknownTable
	}
	return api.Written{}, &hydraclient.Error{Problem: api.Problem{Code: out.Code, Failed: &out.Failed}}
}

// Get answers every other read with the state before the last few transactions, like a local read of a database that
// is behind.
func (m *memory) Get(_ context.Context, table, key string, _ ...hydraclient.Option) (api.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gets++
	row := m.tables[table][key]
	if old := m.behind[key]; m.gets%2 == 1 && table == Accounts && old.Value != nil {
		row = old
	}
	if m.index%37 == 0 {
		m.behind = maps.Clone(m.tables[Accounts])
	}
	if row.Value == nil {
		return api.Row{}, hydraclient.ErrNotFound
	}
	return api.Row{Key: key, Version: row.Version, Value: row.Value}, nil
}

func (m *memory) Scan(_ context.Context, table string, p hydraclient.Page, o ...hydraclient.Option) (api.Rows, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read++
	if m.lost && m.read%2 == 1 {
		return api.Rows{}, hydraclient.ErrUnavailable
	}
	if m.tables[table] == nil {
		return api.Rows{}, hydraclient.ErrUnknownTable
	}
	var rows api.Rows
	for _, k := range slices.Sorted(maps.Keys(m.tables[table])) {
		if strings.HasPrefix(k, p.Prefix) && k > p.After && m.tables[table][k].Value != nil {
			if len(rows.Rows) == p.Limit {
				rows.Next = rows.Rows[p.Limit-1].Key
				break
			}
			rows.Rows = append(rows.Rows, api.Row{Key: k, Value: m.tables[table][k].Value})
		}
	}
	return rows, nil
}

var _ Data = (*memory)(nil)

func opened(t *testing.T, m *memory, names ...string) *Wallet {
	t.Helper()
	w := New(m, time.Now)
	for _, n := range names {
		if _, err := w.Open(t.Context(), "open-"+n, n); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func balances(t *testing.T, w *Wallet) map[string]int64 {
	t.Helper()
	all, _, err := w.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, a := range all {
		got[a.Name] = a.Balance
	}
	return got
}

func TestOrders(t *testing.T) {
	w := opened(t, newMemory(), "ada", "bob")
	ctx := t.Context()
	steps := []struct {
		name string
		do   func() (Source, error)
		is   error
	}{
		{"a deposit", func() (Source, error) { return w.Deposit(ctx, "d1", "ada", 1000) }, nil},
		{"it again", func() (Source, error) { return w.Deposit(ctx, "d1", "ada", 1000) }, nil},
		{"a transfer", func() (Source, error) { return w.Transfer(ctx, "t1", "ada", "bob", 300) }, nil},
		{"it again", func() (Source, error) { return w.Transfer(ctx, "t1", "ada", "bob", 300) }, nil},
		{"more than the balance", func() (Source, error) { return w.Transfer(ctx, "t2", "ada", "bob", 701) }, ErrInsufficient},
		{"to nobody", func() (Source, error) { return w.Transfer(ctx, "t3", "ada", "eve", 1) }, ErrNoAccount},
		{"from nobody", func() (Source, error) { return w.Transfer(ctx, "t4", "eve", "ada", 1) }, ErrNoAccount},
		{"a deposit to a missing account", func() (Source, error) { return w.Deposit(ctx, "d2", "eve", 1) }, ErrNoAccount},
		{"an existing account", func() (Source, error) { return w.Open(ctx, "o1", "ada") }, ErrTaken},
		{"to itself", func() (Source, error) { return w.Transfer(ctx, "t5", "ada", "ada", 1) }, ErrInvalid},
		{"nothing", func() (Source, error) { return w.Transfer(ctx, "t6", "ada", "bob", 0) }, ErrInvalid},
		{"a negative amount", func() (Source, error) { return w.Transfer(ctx, "t7", "ada", "bob", -5) }, ErrInvalid},
		{"the bank", func() (Source, error) { return w.Transfer(ctx, "t8", "!bank", "bob", 5) }, ErrInvalid},
		{"SQL", func() (Source, error) { return w.Open(ctx, "o2", "a'; DROP TABLE x;--") }, ErrInvalid},
		{"too much", func() (Source, error) { return w.Deposit(ctx, "d3", "ada", MaxAmount+1) }, ErrInvalid},
	}
	for _, s := range steps {
		if _, err := s.do(); !errors.Is(err, s.is) || s.is == nil && err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	if got := balances(t, w); !maps.Equal(got, map[string]int64{"ada": 700, "bob": 300}) {
		t.Errorf("balances %v", got)
	}
	history, _, err := w.History(ctx, "bob")
	if err != nil || len(history) != 1 || history[0].Amount != 300 || history[0].From != "ada" {
		t.Errorf("history %+v, %v", history, err)
	}
	if s, _, err := w.Sum(ctx); err != nil || (s != Sum{Accounts: 2, Total: 1000, Deposits: 1000, Holds: true, Moment: true}) {
		t.Errorf("sum %+v, %v", s, err)
	}
}

// TestConcurrentOrdersKeepTheSum checks that clients that lose a response and retry with the same key move money once.
func TestConcurrentOrdersKeepTheSum(t *testing.T) {
	m := newMemory()
	names := []string{"a", "b", "c", "d"}
	w := opened(t, m, names...)
	for _, n := range names {
		if _, err := w.Deposit(t.Context(), "d-"+n, n, 10_000); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(7, 7)) // guarded by the data layer's lock
	m.broken = func() error {
		if random.IntN(3) == 0 {
			return hydraclient.ErrInDoubt
		}
		return nil
	}
	var all sync.WaitGroup
	sent := make([]int64, 8)
	for i := range sent {
		all.Go(func() {
			for k := range 50 {
				id := fmt.Sprintf("%d-%d", i, k)
				for {
					_, err := w.Transfer(t.Context(), id, names[i%4], names[(i+1)%4], 1)
					if errors.Is(err, hydraclient.ErrInDoubt) {
						continue
					}
					if err != nil {
						t.Errorf("%s: %v", id, err)
					}
					sent[i]++
					break
				}
			}
		})
	}
	all.Wait()
	if got := balances(t, w); !maps.Equal(got, map[string]int64{"a": 10_000, "b": 10_000, "c": 10_000, "d": 10_000}) {
		t.Errorf("each sent and got 100: %v", got)
	}
	if s, _, err := w.Sum(t.Context()); err != nil || !s.Holds || s.Total != 40_000 {
		t.Errorf("sum %+v, %v", s, err)
	}
}

func TestReadsWithoutLeader(t *testing.T) {
	m := newMemory()
	w := opened(t, m, "ada")
	m.lost = true
	all, a, err := w.List(t.Context())
	if err != nil || len(all) != 1 || !a.Stale || a.StalenessMS != -1 {
		t.Errorf("%v, %+v, %v", all, a, err)
	}
}

func TestHTTP(t *testing.T) {
	m := newMemory()
	w := opened(t, m, "ada", "bob")
	server := httptest.NewServer(NewServer(w, "aws", slog.New(slog.DiscardHandler)))
	defer server.Close()
	tests := []struct {
		name, method, path, key, body string
		header                        http.Header
		status                        int
		says                          string
	}{
		{"the page", "GET", "/", "", "", nil, 200, "<h1>Wallet</h1>"},
		{"its script", "GET", "/app.js", "", "", nil, 200, "Idempotency-Key"},
		{"health", "GET", "/healthz", "", "", nil, 200, ""},
		{"accounts", "GET", "/api/accounts", "", "", nil, 200, `"wallet":"aws"`},
		{"one account", "GET", "/api/accounts/ada", "", "", nil, 200, `"name":"ada"`},
		{"a missing account", "GET", "/api/accounts/ad", "", "", nil, 404, "no_account"},
		{"an invalid account name", "GET", "/api/accounts/A", "", "", nil, 400, "bad_request"},
		{"history", "GET", "/api/accounts/ada/history", "", "", nil, 200, `"entries":[]`},
		{"history of an invalid name", "GET", "/api/accounts/A'%20OR/history", "", "", nil, 400, "bad_request"},
		{"a deposit", "POST", "/api/deposits", "k1", `{"to":"ada","amount_cents":500}`, nil, 200, `"done":true`},
		{"a transfer", "POST", "/api/transfers", "k2", `{"from":"ada","to":"bob","amount_cents":200}`, nil, 200, `"done":true`},
		{"the sum", "GET", "/api/sum", "", "", nil, 200, `"holds":true`},
		{"too little", "POST", "/api/transfers", "k3", `{"from":"ada","to":"bob","amount_cents":2000}`, nil, 409, "insufficient"},
		{"nobody", "POST", "/api/deposits", "k4", `{"to":"eve","amount_cents":500}`, nil, 404, "no_account"},
		{"no key", "POST", "/api/deposits", "", `{"to":"ada","amount_cents":500}`, nil, 400, "Idempotency-Key"},
		{"a long key", "POST", "/api/deposits", strings.Repeat("k", 101), `{"to":"ada","amount_cents":500}`, nil, 400, "Idempotency-Key"},
		{"a fraction", "POST", "/api/deposits", "k5", `{"to":"ada","amount_cents":0.5}`, nil, 400, "bad_request"},
		{"a word", "POST", "/api/deposits", "k6", `{"to":"ada","amount_cents":"5"}`, nil, 400, "bad_request"},
		{"a number out of range", "POST", "/api/deposits", "k7", `{"to":"ada","amount_cents":99999999999999999999}`, nil, 400, "bad_request"},
		{"no JSON", "POST", "/api/deposits", "k8", `{"to":`, nil, 400, "bad_request"},
		{"two values", "POST", "/api/deposits", "k8", `{"to":"ada","amount_cents":5} {}`, nil, 400, "bad_request"},
		{"an unknown field", "POST", "/api/deposits", "k9", `{"to":"ada","amount_cents":5,"from":"bob"}`, nil, 400, "unknown field"},
		{"a missing field", "POST", "/api/deposits", "k9", `{"to":"ada"}`, nil, 400, "missing"},
		{"a large body", "POST", "/api/deposits", "k10", `{"to":"` + strings.Repeat("a", 5000) + `"}`, nil, 413, "too_large"},
		{"a form of another site", "POST", "/api/deposits", "k11", "to=ada", http.Header{"Content-Type": {"text/plain"}}, 415, ""},
		{"a script of another site", "POST", "/api/deposits", "k12", `{"to":"ada","amount_cents":5}`,
			http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403, ""},
		{"unknown path", "GET", "/api/nothing", "", "", nil, 404, "not_found"},
		{"unsupported method", "DELETE", "/api/accounts", "", "", nil, 404, "not_found"},
	}
	for _, tt := range tests {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		maps.Copy(req.Header, tt.header)
		if tt.key != "" {
			req.Header.Set(api.HeaderRequestID, tt.key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if text := readAll(t, resp); resp.StatusCode != tt.status || !strings.Contains(text, tt.says) {
			t.Errorf("%s: %s: %s", tt.name, resp.Status, text)
		}
		if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("%s: policy %q", tt.name, csp)
		}
	}
	m.broken = func() error { return hydraclient.ErrUnavailable }
	req, _ := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/api/deposits", strings.NewReader(`{"to":"ada","amount_cents":5}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(api.HeaderRequestID, "k20")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var problem api.Problem
	if err := json.Unmarshal([]byte(readAll(t, resp)), &problem); err != nil || resp.StatusCode != 503 ||
		problem.Code != api.CodeUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("without a data layer: %s %+v %v", resp.Status, problem, err)
	}
}

// TestPageHasNoExternalContent checks that the page sends requests only to its own server and contains nothing that
// its content security policy forbids.
func TestPageHasNoExternalContent(t *testing.T) {
	for _, name := range []string{"index.html", "app.js", "style.css"} {
		text, err := page.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"http://", "https://", "<style", " style=", " onclick", "innerHTML", "eval("} {
			if strings.Contains(string(text), bad) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
	}
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
