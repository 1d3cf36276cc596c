package custom

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load"
)

// httpRecords is a server of http-kv.
type httpRecords struct {
	mu   sync.Mutex
	rows map[string]map[string][]byte // by the path
}

func (h *httpRecords) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/refused"):
		http.Error(w, "not today", http.StatusConflict)
		return
	case strings.HasSuffix(r.URL.Path, "/doubtful"):
		http.Error(w, "I forgot", http.StatusBadGateway)
		return
	case strings.HasSuffix(r.URL.Path, "/queued"):
		w.WriteHeader(http.StatusAccepted)
		return
	case strings.HasSuffix(r.URL.Path, "/cut"):
		panic(http.ErrAbortHandler)
	case strings.HasSuffix(r.URL.Path, "/odd"):
		_, _ = w.Write([]byte("<html>")) // fails only if the client has gone
		return
	}
	row, there := h.rows[r.URL.Path]
	switch r.Method {
	case http.MethodGet:
		if table := r.URL.Path; strings.Count(table, "/") == 1 {
			found := []map[string]any{}
			for _, path := range slices.Sorted(maps.Keys(h.rows)) {
				key, of := strings.CutPrefix(path, table+"/")
				if of && key >= r.FormValue("start") && fmt.Sprint(len(found)) != r.FormValue("count") {
					found = append(found, map[string]any{"key": key, "values": h.rows[path]})
				}
			}
			_ = json.NewEncoder(w).Encode(found) // as above
			return
		}
		if there {
			out := make(map[string][]byte)
			for name, value := range row {
				if f := r.FormValue("fields"); f == "" || slices.Contains(strings.Split(f, ","), name) {
					out[name] = value
				}
			}
			_ = json.NewEncoder(w).Encode(out) // as above
			return
		}
	case http.MethodDelete:
		delete(h.rows, r.URL.Path)
	case http.MethodPut, http.MethodPatch:
		if !there && r.Method == http.MethodPut {
			row, there = make(map[string][]byte), true
			h.rows[r.URL.Path] = row
		}
		if there {
			if err := json.NewDecoder(r.Body).Decode(&row); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
	}
	if !there {
		http.NotFound(w, r)
	}
}

// startHTTP starts servers, and returns their addresses.
func startHTTP(t *testing.T, n int) (addrs []string, all []*httpRecords) {
	t.Helper()
	for range n {
		h := &httpRecords{rows: make(map[string]map[string][]byte)}
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		all, addrs = append(all, h), append(addrs, strings.TrimPrefix(s.URL, "http://"))
	}
	return addrs, all
}

// httpServers starts servers and opens a client of them.
func httpServers(t *testing.T, n int, spread string) (load.Client, []*httpRecords) {
	t.Helper()
	addrs, all := startHTTP(t, n)
	c, err := Open(t.Context(), builtins{}, map[string]string{PropProtocol: HTTPKV, PropServers: strings.Join(addrs, ","), PropSpread: spread})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // Close never fails
	return c, all
}

func TestHTTP(t *testing.T) {
	c, servers := httpServers(t, 3, "hash")
	ctx := t.Context()
	for _, key := range []string{"user1", "user2", "user/3 ?%", "user4", "user5", "user6"} {
		if _, err := c.Read(ctx, "t", key, nil, nil); !errors.Is(err, load.ErrNotFound) {
			t.Fatalf("read of a missing record: %v", err)
		}
		if err := c.Update(ctx, "t", key, []load.Field{{Name: "a", Value: []byte("x")}}); !errors.Is(err, load.ErrNotFound) {
			t.Fatalf("update of a missing record: %v", err)
		}
		value := []byte{0, 0xff, '\n'}
		if err := c.Insert(ctx, "t", key, []load.Field{{Name: "a", Value: value}, {Name: "b", Value: []byte("y")}}); err != nil {
			t.Fatal(err)
		}
		if err := c.Update(ctx, "t", key, []load.Field{{Name: "b", Value: []byte("z")}}); err != nil {
			t.Fatal(err)
		}
		got, err := c.Read(ctx, "t", key, []string{"a"}, nil)
		if d := cmp.Diff([]load.Field{{Name: "a", Value: value}}, got); err != nil || d != "" {
			t.Fatalf("%s: %v %s", key, err, d)
		}
		if got, err = c.Read(ctx, "t", key, nil, nil); err != nil || len(got) != 2 {
			t.Fatalf("%s: %v, %v", key, got, err)
		}
	}
	for i, s := range servers {
		if len(s.rows) == 0 {
			t.Errorf("server %d has no records", i)
		}
	}
	if _, err := c.Scan(ctx, "t", "user", 5, nil, nil); !errors.Is(err, load.ErrUnsupported) {
		t.Errorf("scan over several servers: %v", err)
	}
	if err := c.Delete(ctx, "t", "user1"); err != nil {
		t.Error(err)
	}
	if err := c.Delete(ctx, "t", "user1"); !errors.Is(err, load.ErrNotFound) {
		t.Errorf("delete of a missing record: %v", err)
	}
}

func TestHTTPScan(t *testing.T) {
	c, _ := httpServers(t, 1, "any")
	if err := c.Insert(t.Context(), "t", "user1", []load.Field{{Name: "a", Value: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	n, err := c.Scan(t.Context(), "t", "user", 5, []string{"a"}, func(key string, fields []load.Field) {
		if key != "user1" || len(fields) != 1 || string(fields[0].Value) != "x" {
			t.Errorf("saw %s %v", key, fields)
		}
	})
	if n != 1 || err != nil {
		t.Errorf("saw %d, %v", n, err)
	}
}

func TestHTTPErrors(t *testing.T) {
	c, _ := httpServers(t, 1, "any")
	for _, test := range []struct {
		key     string
		outcome load.Outcome
		class   string
	}{
		{"refused", load.NotDone, "http_409"}, {"doubtful", load.InDoubt, "http_502"}, {"queued", load.InDoubt, "http_202"}, {"cut", load.InDoubt, "eof"}, {"odd", load.NotDone, "protocol"},
	} {
		_, err := c.Read(t.Context(), "t", test.key, nil, nil)
		var e *load.OpError
		if !errors.As(err, &e) || e.Outcome != test.outcome || e.Class != test.class {
			t.Errorf("%s: %v, want %v %s", test.key, err, test.outcome, test.class)
		}
	}
	gone, err := Open(t.Context(), builtins{}, map[string]string{PropProtocol: HTTPKV, PropServers: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	var e *load.OpError
	if err := gone.Insert(t.Context(), "t", "user1", nil); !errors.As(err, &e) || e.Outcome != load.NotDone || e.Class != "refused" {
		t.Errorf("no server: %v", err)
	}
	for _, bad := range []map[string]string{{}, {PropServers: "a:b"}, {PropServers: "a:1", PropSpread: "wide"}, {"http.server": "a:1"}} {
		bad[PropProtocol] = HTTPKV
		if _, err := Open(t.Context(), builtins{}, bad); !errors.Is(err, ErrProperty) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
