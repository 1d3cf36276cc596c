package serve

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"skerry/internal/record"
	"skerry/internal/run/live"
)

// hostile is a name that would be markup if it were not escaped.
const hostile = `<img src=x onerror=alert(1)>"'&`

// bench is a server of a folder of runs, with a browser.
type bench struct {
	t      *testing.T
	dir    string
	server *Server
	http   *httptest.Server
	client *http.Client
}

func newBench(t *testing.T, token string) *bench {
	t.Helper()
	dir := t.TempDir()
	s, err := New(Config{
		Runs: dir, Token: token, Version: "test", Log: slog.New(slog.DiscardHandler),
		Page: fstest.MapFS{pageFile + gzipSuffix: compress(t, "<!doctype html><title>Skerry</title>"),
			"assets/a.js" + gzipSuffix: compress(t, "0"), "secret" + gzipSuffix: compress(t, "no")},
		Report: func(w io.Writer, d *record.Dir) error {
			_, err := fmt.Fprintf(w, "<title>report of %d trials</title>", len(d.Summary.Trials))
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir, server: s, http: httptest.NewServer(s.Handler())}
	t.Cleanup(b.http.Close)
	b.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: time.Minute}
	return b
}

func compress(t *testing.T, text string) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

// request sends a request with headers "Name: value".
func (b *bench) request(method, path, body string, headers ...string) (int, http.Header, string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, b.http.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Set(name, value)
		}
	}
	answer, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

// get reads JSON.
func (b *bench) get(path string, into any) {
	b.t.Helper()
	code, _, body := b.request(http.MethodGet, path, "")
	if code != http.StatusOK {
		b.t.Fatalf("GET %s: %d %s", path, code, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		b.t.Fatalf("GET %s: %v in %s", path, err, body)
	}
}

// own are the headers of a page of this server.
func (b *bench) own() []string {
	return []string{csrfHeader + ": " + b.server.csrf, "Origin: " + b.http.URL, "Sec-Fetch-Site: same-origin",
		"Content-Type: application/json"}
}

// run creates a run directory of two cells, with given results of trials.
func (b *bench) run(name string, finish bool, states ...string) string {
	b.t.Helper()
	var plan []record.Planned
	for i := range max(2, len(states)) {
		plan = append(plan, record.Planned{ID: i + 1, Cell: i%2 + 1, Repetition: i/2 + 1,
			Parameters: map[string]any{"scale": float64(i%2 + 1), "workload": "a"}})
	}
	w, err := record.Create(b.dir, record.Run{Name: name, Description: hostile, Plan: plan,
		Versions: record.Versions{Databases: map[string]string{"redis": "8.0"}}})
	if err != nil {
		b.t.Fatal(err)
	}
	for i, state := range states {
		t, err := w.OpenTrial(i + 1)
		if err != nil {
			b.t.Fatal(err)
		}
		x := record.Trial{State: record.TrialOK, Goodput: 1000 * float64(i+1), Verdict: record.Verdict{State: state},
			Events: []record.EventImpact{{Kind: "kill", Source: record.SourceUI}}}
		if state == record.TrialFailed {
			x = record.Trial{State: state, Error: hostile}
		}
		if err := t.Finish(x); err != nil {
			b.t.Fatal(err)
		}
	}
	end := w.Close
	if finish {
		end = w.Finish
	}
	if err := end(); err != nil {
		b.t.Fatal(err)
	}
	return filepath.Base(w.Dir())
}

// live creates a run with a live feed.
func (b *bench) live(name string) (*live.Feed, string) {
	b.t.Helper()
	name, start := b.begun(name)
	return start(), name
}

// begun creates a run with a directory, and starts its feed on request.
func (b *bench) begun(name string) (run string, start func() *live.Feed) {
	b.t.Helper()
	w, err := record.Create(b.dir, record.Run{Name: name, Plan: []record.Planned{{ID: 1, Cell: 1, Repetition: 1}}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := w.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return filepath.Base(w.Dir()), func() *live.Feed {
		f := live.New(live.Run{Name: filepath.Base(w.Dir()), Experiment: name, Planned: 1})
		s, err := live.Listen(w.Dir(), f, slog.New(slog.DiscardHandler))
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() {
			if err := s.Close(); err != nil {
				b.t.Error(err)
			}
		})
		return f
	}
}

// file puts a file into the folder of runs.
func (b *bench) file(path, text string) {
	b.t.Helper()
	path = filepath.Join(b.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// measured creates a run of one trial with these seconds.
func (b *bench) measured(name string, seconds ...record.Second) string {
	b.t.Helper()
	w, err := record.Create(b.dir, record.Run{Name: name, Plan: []record.Planned{{ID: 1, Cell: 1, Repetition: 1}}})
	if err != nil {
		b.t.Fatal(err)
	}
	t, err := w.OpenTrial(1)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, x := range seconds {
		if err := t.Second(x); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, end := range []func() error{func() error { return t.Finish(record.Trial{State: record.TrialOK}) }, w.Finish} {
		if err := end(); err != nil {
			b.t.Fatal(err)
		}
	}
	return filepath.Base(w.Dir())
}
