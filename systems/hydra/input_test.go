package hydra

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"skerry/internal/base/bearer"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
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
		want         map[string]int // by scope, "" for no token
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
		{"oversize body", "POST", "/v1/transactions", `{"writes":[{"do":"put","table":"t","key":"` + strings.Repeat("k", api.MaxBody) + `"}]}`, api.CodeTooLarge},
		{"oversize value", "PUT", "/v1/tables/t/rows/k", `{"a":"` + strings.Repeat("x", command.MaxValue) + `"}`, api.CodeBadRequest},
		{"unknown table, read", "GET", "/v1/tables/none/rows/k", "", api.CodeUnknownTable},
		{"unknown table, scan", "GET", "/v1/tables/none/rows", "", api.CodeUnknownTable},
		{"unknown table, write", "PUT", "/v1/tables/none/rows/k", "{}", api.CodeUnknownTable},
		{"unknown table, transaction", "POST", "/v1/transactions", `{"checks":[{"table":"none","key":"k","is":"exists"}],"writes":[{"do":"delete","table":"t","key":"k"}]}`, api.CodeUnknownTable},
		{"SQL as a table", "GET", "/v1/tables/t%22%3B%20DROP%20TABLE%20t%3B--/rows", "", api.CodeBadRequest},
		{"a table of Hydra's own", "GET", "/v1/tables/hydra_meta/rows", "", api.CodeBadRequest},
		{"writing one", "PUT", "/v1/tables/hydra_members/rows/1", "{}", api.CodeBadRequest},
		{"unknown read", "GET", "/v1/tables/t/rows/k?read=dirty", "", api.CodeBadRequest},
		{"bounded by nothing", "GET", "/v1/tables/t/rows/k?read=bounded", "", api.CodeBadRequest},
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
	eventually(t, "a write waits", func() bool { return a.log.Commit() > a.progress.at() })
	_, err = one.Get(t.Context(), "t", "k", hydraclient.Read(api.Local))
	var answer *hydraclient.Error
	if !errors.Is(err, hydraclient.ErrOverloaded) || !errors.As(err, &answer) || answer.RetryAfter == 0 {
		t.Errorf("beyond what is served at a time: %v", err)
	}
	a.log.release()
	if err := <-waits; err != nil {
		t.Error(err)
	}
}
