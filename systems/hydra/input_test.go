package hydra

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skerry/internal/base/bearer"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/framing"
	"skerry/systems/hydra/hydraclient"
)

func TestScopes(t *testing.T) {
	words := map[string]string{"read": strings.Repeat("r", 32), "write": strings.Repeat("w", 32), "admin": strings.Repeat("a", 32)}
	var text strings.Builder
	for scope, token := range words {
		fmt.Fprintln(&text, scope, token)
	}
	tokens, err := bearer.Parse([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	a := startMember(t, newSharedLog(), "a", "east", "", tokens)
	if err := a.client.CreateTable(t.Context(), "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path string
		want         map[string]int // status by scope, "" for no token
	}{
		{"GET", "/v1/tables/t/rows", map[string]int{"": 401, "wrong": 401, "read": 200, "write": 200, "admin": 200}},
		{"PUT", "/v1/tables/t/rows/k", map[string]int{"": 401, "wrong": 401, "read": 403, "write": 200, "admin": 200}},
		{"GET", "/v1/snapshot", map[string]int{"": 401, "read": 403, "write": 403, "admin": 200}},
		{"GET", "/status", map[string]int{"": 401, "read": 200}},
		{"GET", "/metrics", map[string]int{"": 401, "read": 200}},
		{"GET", "/healthz", map[string]int{"": 200, "wrong": 200}},
		{"GET", "/openapi.yaml", map[string]int{"": 200}},
	} {
		for scope, want := range c.want {
			r, err := http.NewRequestWithContext(t.Context(), c.method, a.url+c.path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if scope != "" {
				r.Header.Set("Authorization", "Bearer "+words[scope]+strings.Repeat("x", 32-len(words[scope])))
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s %s with %q: %d, want %d", c.method, c.path, scope, answer.StatusCode, want)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	a := startMember(t, newSharedLog(), "a", "east", "", nil)
	if err := a.client.CreateTable(t.Context(), "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, method, path, body string
		want                     string
	}{
		{"malformed JSON", "PUT", "/v1/tables/t/rows/k", `{"a":`, api.CodeBadRequest},
		{"no object", "PUT", "/v1/tables/t/rows/k", `[1]`, api.CodeBadRequest},
		{"two values", "POST", "/v1/transactions", `{"writes":[{"do":"delete","table":"t","key":"k"}]}{}`, api.CodeBadRequest},
		{"unknown name", "POST", "/v1/transactions", `{"wirtes":[]}`, api.CodeBadRequest},
		{"no writes", "POST", "/v1/transactions", `{}`, api.CodeBadRequest},
		{"oversize body", "POST", "/v1/transactions", `{"writes":[{"do":"put","table":"t","key":"` + strings.Repeat("k",
			api.MaxBody) + `"}]}`, api.CodeTooLarge},
		{"oversize value", "PUT", "/v1/tables/t/rows/k", `{"a":"` + strings.Repeat("x", command.MaxValue) + `"}`, api.CodeBadRequest},
		{"unknown table, read", "GET", "/v1/tables/none/rows/k", "", api.CodeUnknownTable},
		{"unknown table, scan", "GET", "/v1/tables/none/rows", "", api.CodeUnknownTable},
		{"unknown table, write", "PUT", "/v1/tables/none/rows/k", "{}", api.CodeUnknownTable},
		{"unknown table, transaction", "POST", "/v1/transactions",
			`{"checks":[{"table":"none","key":"k","is":"exists"}],"writes":[{"do":"delete","table":"t","key":"k"}]}`, api.CodeUnknownTable},
		{"SQL as a table", "GET", "/v1/tables/t%22%3B%20DROP%20TABLE%20t%3B--/rows", "", api.CodeBadRequest},
		{"a table of Hydra's own", "GET", "/v1/tables/hydra_meta/rows", "", api.CodeBadRequest},
		{"writing one", "PUT", "/v1/tables/hydra_members/rows/1", "{}", api.CodeBadRequest},
		{"unknown read", "GET", "/v1/tables/t/rows/k?read=dirty", "", api.CodeBadRequest},
		{"bounded without a bound", "GET", "/v1/tables/t/rows/k?read=bounded", "", api.CodeBadRequest},
		{"unknown ack", "PUT", "/v1/tables/t/rows/k?ack=maybe", "{}", api.CodeBadRequest},
		{"limit", "GET", "/v1/tables/t/rows?limit=1000000", "", api.CodeBadRequest},
		{"unknown path", "GET", "/v2/tables", "", api.CodeBadRequest},
		{"no member", "DELETE", "/v1/members/x", "", api.CodeBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), c.method, a.url+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			var p api.Problem
			if err := json.NewDecoder(answer.Body).Decode(&p); err != nil || p.Code != c.want || answer.StatusCode/100 != 4 {
				t.Errorf("%d %+v, %v; want %s", answer.StatusCode, p, err, c.want)
			}
		})
	}
}

func TestOverload(t *testing.T) {
	shared := newSharedLog()
	a := startMember(t, shared, "a", "east", "", nil)
	if err := a.client.CreateTable(t.Context(), "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Config{Backend: a.Node, Member: "a", InFlight: 1, Timeout: patience}))
	defer server.Close()
	one, err := hydraclient.New(hydraclient.Config{Endpoints: []string{server.Listener.Addr().String()}, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	hold(t, a)
	waits := make(chan error, 1)
	go func() {
		_, err := one.Put(t.Context(), "t", "k", map[string]int{}, hydraclient.Ack(api.Applied))
		waits <- err
	}()
	eventually(t, "a write is waiting", func() bool { return a.log.Commit() > a.progress.index() })
	_, err = one.Get(t.Context(), "t", "k", hydraclient.Read(api.Local))
	var answer *hydraclient.Error
	if !errors.Is(err, hydraclient.ErrOverloaded) || !errors.As(err, &answer) || answer.RetryAfter == 0 {
		t.Errorf("a request beyond the concurrency limit: %v", err)
	}
	a.log.release()
	if err := <-waits; err != nil {
		t.Error(err)
	}
}

// markup returns a row of the maximum size whose characters package json escapes with six bytes.
func markup() json.RawMessage {
	const around = len(`{"v":""}`)
	return json.RawMessage(`{"v":"` + strings.Repeat("<&>\u2028", (command.MaxValue-around)/6) + `"}`)
}

// TestRowsKeepTheirBytes writes rows of the maximum size in every way, served by the cloud's own database and by
// another cloud's. Reads must return them byte for byte.
func TestRowsKeepTheirBytes(t *testing.T) {
	shared, ctx := newSharedLog(), t.Context()
	a, b := startMember(t, shared, "a", "east", "", nil), startMember(t, shared, "b", "west", "", nil)
	if err := a.client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b knows a", func() bool { _, ok := b.findSubstitute(); return ok })
	if _, err := operated(t, b.path).ExecContext(ctx, "ALTER TABLE hydra_meta RENAME TO elsewhere"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Put(ctx, "t", "k", map[string]int{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b stops serving", func() bool { return b.databaseProblem() != nil })
	streams, err := hydraclient.New(hydraclient.Config{Endpoints: []string{strings.TrimPrefix(b.url, "http://")},
		Timeout: patience, Streams: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer streams.Close()
	for name, c := range map[string]*hydraclient.Client{"own": a.client, "other": b.client, "stream": streams} {
		t.Run(name, func(t *testing.T) {
			want := markup()
			check := func(how, key string) {
				t.Helper()
				for _, by := range []*hydraclient.Client{a.client, c} {
					if row, err := by.Get(ctx, "t", key); err != nil || string(row.Value) != string(want) {
						t.Errorf("%s: got %d bytes, want %d, %v", how, len(row.Value), len(want), err)
					}
				}
			}
			if _, err := c.Put(ctx, "t", "<put>"+name, want, hydraclient.RequestID("put"+name)); err != nil {
				t.Errorf("a put: %v", err)
			}
			check("put", "<put>"+name)
			if _, err := c.Transact(ctx, api.Transaction{
				Checks: []api.Check{{Table: "t", Key: "once" + name, Is: command.Absent}},
				Writes: []api.Write{{Do: command.Put, Table: "t", Key: "once" + name, Value: want}},
			}); err != nil {
				t.Errorf("a conditional put: %v", err)
			}
			check("conditional put", "once"+name)
			var all api.Transaction
			keys := []string{"x", "y", "z"}
			for _, k := range keys {
				all.Writes = append(all.Writes, api.Write{Do: command.Put, Table: "t", Key: k + name, Value: want})
			}
			if _, err := c.Transact(ctx, all, hydraclient.RequestID("transaction"+name)); err != nil {
				t.Errorf("a transaction of 3 MiB: %v", err)
			}
			for _, k := range keys {
				check("transaction", k+name)
			}
		})
	}
	type page struct{ V string }
	if _, err := a.client.Put(ctx, "t", "struct", page{"a<b"}); err != nil {
		t.Fatal(err)
	}
	if row, err := a.client.Get(ctx, "t", "struct"); err != nil || string(row.Value) != `{"V":"a<b"}` {
		t.Errorf("a value that the client marshalled: %s, %v", row.Value, err)
	}
}

// begin sends only the beginning of a request.
func begin(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// stalling starts a member's API and returns it with its address and a client.
func stalling(t *testing.T, c api.Config) (*api.Server, string, *hydraclient.Client) {
	t.Helper()
	a := startMember(t, newSharedLog(), "a", "east", "", nil)
	if err := a.client.CreateTable(t.Context(), "t", hydraclient.Ack(api.Applied)); err != nil {
		t.Fatal(err)
	}
	c.Backend, c.Member, c.Timeout = a.Node, "a", patience
	s := api.New(c)
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	addr := server.Listener.Addr().String()
	client, err := hydraclient.New(hydraclient.Config{Endpoints: []string{addr}, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return s, addr, client
}

// TestStalled begins requests that never end. They must not occupy slots of complete requests.
func TestStalled(t *testing.T) {
	_, addr, client := stalling(t, api.Config{InFlight: 1})
	for i := range 8 {
		begin(t, addr, fmt.Sprintf("PUT /v1/tables/t/rows/%d HTTP/1.1\r\nHost: localhost\r\nExpect: "+
			"100-continue\r\nContent-Length: 1000\r\n\r\n{", i))
		begin(t, addr, "POST /v1/transactions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
	}
	for i := range 20 {
		if _, err := client.Put(t.Context(), "t", fmt.Sprint(i), map[string]int{"n": i}); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
}

// TestHuge sends more data at once than fits into the memory limit. The excess is refused without effect, and small
// requests are served. Stalled requests time out and release their memory.
func TestHuge(t *testing.T) {
	s, addr, client := stalling(t, api.Config{Bodies: 1 << 20, Patience: patience / 10})
	row := `{"text":"` + strings.Repeat("x", 700<<10) + `"}`
	stalled := begin(t, addr, fmt.Sprintf("PUT /v1/tables/t/rows/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
		len(row), row[:len(row)-1]))
	eventually(t, "the large row has reserved memory", func() bool { return s.Held() > 600<<10 })
	_, err := client.Put(t.Context(), "t", "b", map[string]string{"text": strings.Repeat("x", 600<<10)})
	if !errors.Is(err, hydraclient.ErrOverloaded) {
		t.Errorf("another large row: %v", err)
	}
	if _, err := client.Put(t.Context(), "t", "c", map[string]int{"n": 1}); err != nil {
		t.Errorf("a small row: %v", err)
	}
	head := "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: " + framing.Protocol + "\r\n\r\n"
	stream := begin(t, addr, head+"\x00\x00\x40\x00"+row[:100])
	if text, _ := io.ReadAll(stalled); !strings.HasPrefix(string(text), "HTTP/1.1 400 ") {
		t.Errorf("response to a stalled request: %.200q", text)
	}
	if text, err := io.ReadAll(stream); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 101 ") {
		t.Errorf("response to a stream that stalled within a frame: %.200q, %v", text, err)
	}
	eventually(t, "no memory is reserved", func() bool { return s.Held() == 0 })
	if _, err := client.Put(t.Context(), "t", "b", map[string]string{"text": strings.Repeat("x", 600<<10)}); err != nil {
		t.Errorf("a large row after the memory was released: %v", err)
	}
	resp, err := http.Get("http://" + addr + "/v1/tables/t/count")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); !strings.Contains(string(text), `"rows":2`) {
		t.Errorf("%s", text)
	}
}
