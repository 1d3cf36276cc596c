package serve

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skerry/internal/event"
	"skerry/internal/link"
	"skerry/internal/record"
	"skerry/internal/report/compare"
	"skerry/internal/report/webdata"
	"skerry/internal/run/live"
)

// A browser may learn of a run's directory before the run has a feed.
func TestFollowFromStart(t *testing.T) {
	b := newBench(t, "")
	name, start := b.begun("new")
	asked, answered := make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(asked) }})
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.http.URL+"/api/runs/"+name+"/live", nil)
		if err != nil {
			answered <- err
			return
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			defer answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				err = errors.New(answer.Status)
			}
		}
		answered <- err
	}()
	<-asked
	start()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	b := newBench(t, "")
	var none []Entry
	if b.get("/api/runs", &none); none == nil || len(none) != 0 {
		t.Errorf("runs of an empty folder: %v", none)
	}
	whole := b.run("whole", true, record.Valid, record.Suspect)
	killed := b.run("killed", false, record.Valid)
	failed := b.run("failed", true, record.TrialFailed, record.Valid)
	_, running := b.live("running")
	b.file("newer/run.json", `{"schema": "skerry/run/v9"}`)
	b.file("older/run.json", `{"schema": "skerry/run/v0", "name": "x"}`)
	b.file("truncated/run.json", `{"schema": "skerry/run/v1", "na`)
	b.file("foreign/run.json", `["something", "else"]`)
	b.file("no-run/notes.txt", "x")
	b.file("a-file", "x")
	b.file(hostile[:4]+"/run.json", "{")
	if err := os.WriteFile(filepath.Join(b.dir, whole, "summary.json"), []byte(`{"schema": "skerry/summary/v1", "tri`), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time from the cache
		var list []Entry
		b.get("/api/runs", &list)
		got := map[string]Entry{}
		for _, e := range list {
			got[e.Name] = e
		}
		want := map[string]State{whole: StateFinished, killed: StateInterrupted, failed: StateFinished, running: StateRunning,
			"newer": StateUnreadable,
			"older": StateUnreadable, "truncated": StateUnreadable, "foreign": StateUnreadable, hostile[:4]: StateUnreadable}
		states := map[string]State{}
		for name, e := range got {
			if states[name] = e.State; (e.State == StateUnreadable) != (e.Problem != "") {
				t.Errorf("%s: problem %q", name, e.Problem)
			}
		}
		if diff := cmp.Diff(want, states); diff != "" {
			t.Fatal(diff)
		}
		e := got[whole] // read despite its damaged summary
		if diff := cmp.Diff(map[string]int{record.Valid: 1, record.Suspect: 1}, e.Trials); diff != "" {
			t.Error(diff)
		}
		if e.Planned != 2 || *e.Goodput != [2]float64{1000, 2000} || e.Description != hostile || e.Versions["redis"] != "8.0" {
			t.Errorf("%+v", e)
		}
		if diff := cmp.Diff(map[string][]string{"scale": {"1", "2"}, "workload": {"a"}}, e.Parameters); diff != "" {
			t.Error(diff)
		}
		if got[failed].Trials[record.TrialFailed] != 1 {
			t.Errorf("%+v", got[failed])
		}
	}
}

func TestDetail(t *testing.T) {
	b := newBench(t, "")
	name := b.run("quickstart", true, record.Valid, record.TrialFailed, record.Valid)
	var d Detail
	b.get("/api/runs/"+name, &d)
	if len(d.Ended) != 3 || d.Ended[2].Cell != 1 || d.Ended[2].Repetition != 2 || d.Ended[1].Error != hostile || d.Ended[0].ByHand != 1 {
		t.Errorf("trials %+v", d.Ended)
	}
	want := []Cell{{1, map[string]any{"scale": 1.0, "workload": "a"}, 2}, {2, map[string]any{"scale": 2.0, "workload": "a"}, 0}}
	if diff := cmp.Diff(want, d.Cells); diff != "" {
		t.Error(diff)
	}
}

// The time series of a trial are those of a report; a trial without a measurement, or that does not exist, is not
// found.
func TestTrial(t *testing.T) {
	b := newBench(t, "")
	name := b.measured("measured", record.Second{T: 0, OK: 700, ResponseP99: 2000}, record.Second{T: 1, OK: 900, ResponseP99: 8000})
	var d webdata.Detail
	b.get("/api/runs/"+name+"/trials/1", &d)
	if d.Timeline == nil {
		t.Fatal("a trial that measured has no timeline")
	}
	if diff := cmp.Diff([]float64{700, 900}, []float64(d.Timeline.OK)); diff != "" {
		t.Error(diff)
	}
	failed := b.run("failed", true, record.TrialFailed)
	for _, path := range []string{name + "/trials/2", name + "/trials/0", name + "/trials/-1", name + "/trials/x",
		failed + "/trials/1", "nothing/trials/1"} {
		if code, _, body := b.request(http.MethodGet, "/api/runs/"+path, ""); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// Names refer only to runs of the folder.
func TestRunNamesAreValidated(t *testing.T) {
	b := newBench(t, "")
	name := b.run("x", true)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "run.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	up := "..%2f" + filepath.Base(outside)
	for _, bad := range []string{"nothing", "..", "%2e%2e", up, "..%2f..%2fetc", "%2fetc", name + "%2f..", name + "%2ftrials", "link",
		"latest", "%00", name + "%00", "%5c..", ""} {
		for _, path := range []string{"/api/runs/%s/notes", "/api/runs/%s", "/runs/%s/report", "/api/compare?a=%s&b=" + name} {
			code, _, body := b.request(http.MethodGet, fmt.Sprintf(path, bad), "")
			if code == http.StatusOK && !strings.HasSuffix(fmt.Sprintf(path, bad), "/api/runs/") {
				t.Errorf(path+": %d %s", bad, code, body)
			}
		}
	}
	for _, path := range []string{"/secret", "/assets/../secret", "/assets/%2e%2e/secret", "/" + pageFile + "/../secret",
		"/assets/..%2fsecret"} {
		if code, _, body := b.request(http.MethodGet, path, ""); code == http.StatusOK {
			t.Errorf("%s: %s", path, body)
		}
	}
}

// A file of the dashboard is sent as it is stored to clients that accept gzip, and decompressed to others.
func TestFilesAreCompressed(t *testing.T) {
	b := newBench(t, "")
	for path, want := range map[string]struct{ kind, text string }{
		"/": {"text/html; charset=utf-8", "<!doctype html><title>Skerry</title>"}, "/assets/a.js": {"text/javascript; charset=utf-8", "0"},
	} {
		for accept, compressed := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "identity": false, "gzip;q=0": false, "": false} {
			code, h, body := b.request(http.MethodGet, path, "", "Accept-Encoding: "+accept)
			if code != http.StatusOK || h.Get("Content-Type") != want.kind || (h.Get("Content-Encoding") == "gzip") != compressed ||
				h.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s, accepting %q: %d %v", path, accept, code, h)
			}
			if compressed {
				r, err := gzip.NewReader(strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				body = string(text)
			}
			if body != want.text {
				t.Errorf("%s, accepting %q: %q", path, accept, body)
			}
		}
	}
	if code, _, _ := b.request(http.MethodGet, "/assets/none.js", ""); code != http.StatusNotFound {
		t.Errorf("a missing file: %d", code)
	}
}

func TestNotes(t *testing.T) {
	b := newBench(t, "")
	name := b.run("x", true, record.Valid)
	path := "/api/runs/" + name + "/notes"
	var n record.Notes
	b.get(path, &n)
	put := func(text string) (int, string) {
		code, _, body := b.request(http.MethodPut, path, text, b.own()...)
		return code, body
	}
	if code, body := put(`{"revision": 0, "note": "slow disk", "tags": ["baseline"]}`); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	if code, body := put(`{"revision": 0, "note": "of another browser tab"}`); code != http.StatusConflict ||
		!strings.Contains(body, "changed concurrently") {
		t.Errorf("over a newer revision: %d %s", code, body)
	}
	for _, bad := range []string{"", "{", `{"revision": 1, "tags": ["a,b"]}`,
		`{"revision": 1, "note": "` + strings.Repeat("x", bodyLimit) + `"}`} {
		if code, body := put(bad); code != http.StatusBadRequest {
			t.Errorf("%.30q: %d %s", bad, code, body)
		}
	}
	var list []Entry
	b.get("/api/runs", &list)
	want := record.Notes{Schema: record.NotesSchema, Revision: 1, Note: "slow disk", Tags: []string{"baseline"}}
	if diff := cmp.Diff(want, list[0].Notes, cmpopts.IgnoreFields(record.Notes{}, "Changed")); diff != "" {
		t.Error(diff)
	}
}

// A report is generated from the data; the file of that name is not shown.
func TestReport(t *testing.T) {
	b := newBench(t, "")
	name := b.run("x", true, record.Valid)
	b.file(name+"/report.html", "<script>alert(1)</script>")
	for range 2 {
		code, h, body := b.request(http.MethodGet, "/runs/"+name+"/report", "")
		if code != http.StatusOK || body != "<title>report of 1 trials</title>" {
			t.Errorf("%d %s", code, body)
		}
		if p := h.Get("Content-Security-Policy"); !strings.HasPrefix(p, "sandbox allow-scripts") ||
			strings.Contains(p, "allow-same-origin") || strings.Contains(p, "connect-src") {
			t.Errorf("policy %s", p)
		}
	}
	b.file("bad/run.json", `{"schema": "skerry/run/v9"}`)
	if code, _, body := b.request(http.MethodGet, "/runs/bad/report", ""); code != http.StatusUnprocessableEntity ||
		!strings.Contains(body, "newer skerry") {
		t.Errorf("a run of a newer skerry: %d %s", code, body)
	}
}

func TestCompare(t *testing.T) {
	b := newBench(t, "")
	one, two := b.run("one", true, record.Valid, record.Valid), b.run("two", true, record.Valid, record.Valid)
	var r compare.Report
	b.get("/api/compare?a="+one+"&b="+two, &r)
	if len(r.Pairs) != 2 || r.Pairs[0].A.Run != one || r.Pairs[0].B.Run != two {
		t.Errorf("%+v", r)
	}
	b.get("/api/compare?a="+one+"&b="+two+"&a_cell=1&b_cell=2", &r)
	if len(r.Pairs) != 1 || r.Pairs[0].B.Cell != 2 {
		t.Errorf("%+v", r)
	}
	if code, _, body := b.request(http.MethodGet, "/api/compare?a="+one+"&b="+two+"&a_cell=7&b_cell=1", ""); code != http.StatusBadRequest {
		t.Errorf("a missing cell: %d %s", code, body)
	}
	renamed := one + "-kept" // renamed by hand: the record has the old name
	if err := os.Rename(filepath.Join(b.dir, one), filepath.Join(b.dir, renamed)); err != nil {
		t.Fatal(err)
	}
	b.get("/api/compare?a="+renamed+"&b="+two, &r)
	if len(r.Pairs) != 2 || r.Pairs[0].A.Run != renamed {
		t.Errorf("a run that was renamed: %+v", r)
	}
	if code, _, body := b.request(http.MethodGet, "/api/runs/"+r.Pairs[0].A.Run+"/trials/1", ""); code != http.StatusOK {
		t.Errorf("series of the renamed run: %d %s", code, body)
	}
	one = renamed
	empty := b.run("empty", false)
	if code, _, body := b.request(http.MethodGet, "/api/compare?a="+one+"&b="+empty, ""); code != http.StatusBadRequest ||
		!strings.Contains(body, "no trial succeeded") {
		t.Errorf("a run without trials: %d %s", code, body)
	}
}

// measure brings a feed to a state in which events can be injected.
func measure(f *live.Feed, fire live.Fire) {
	f.BeginTrial(live.Trial{ID: 1, Number: 1, Database: "redis", Parameters: map[string]any{"scale": 1, "workload": hostile}})
	q := link.Quality{Latency: 20 * time.Millisecond}
	f.SetCloud(live.Cloud{Sites: []live.Site{{Name: "s"}}, Nodes: []live.Node{{Name: "a", Site: "s"}, {Name: hostile, Site: "s"}},
		Links: []live.Link{live.NewLink("a~b", "a", hostile, q, q)}})
	f.SetMeasuring(time.Now(), fire)
	f.AddSecond(record.Second{T: 0, Length: 1, OK: 120, ServiceP50: 1500})
	f.AddNodes([]record.NodeSecond{{Node: "a", CPU: 0.4}, {Node: hostile}, {Node: "@host"}}) // a delayed sample
	f.AddNodes([]record.NodeSecond{{Node: "a", CPU: 0.5, Memory: 1 << 20}, {Node: hostile}, {Node: "@host", CPU: 1.5}})
	f.AddEvent(record.Event{ID: 1, Kind: "kill", State: record.EventActive})
}

// A browser follows, disconnects, and receives the missed messages on return.
func TestFollow(t *testing.T) {
	b := newBench(t, "")
	feed, name := b.live("x")
	measure(feed, nil)
	open := func(query string, headers ...string) (*http.Response, *bufio.Scanner, context.CancelFunc) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.http.URL+"/api/runs/"+name+"/live"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range headers {
			k, v, _ := strings.Cut(h, ": ")
			r.Header.Set(k, v)
		}
		answer, err := b.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cancel(); answer.Body.Close() })
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		return answer, lines, cancel
	}
	next := func(lines *bufio.Scanner) (id, kind, data string) {
		for lines.Scan() {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch key {
			case "id":
				id = value
			case "event":
				kind = value
			case "data":
				data = value
			case "":
				if kind != "ping" {
					return id, kind, data
				}
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return
	}
	answer, lines, away := open("")
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %s", got)
	}
	id, kind, data := next(lines)
	var state live.State
	if err := json.Unmarshal([]byte(data), &state); err != nil || kind != string(live.KindState) || state.Totals.OK != 120 {
		t.Fatalf("%v %s %s", err, kind, data)
	}
	away()
	feed.AddSecond(record.Second{T: 1, OK: 7})
	for _, back := range []func() (*http.Response, *bufio.Scanner, context.CancelFunc){
		func() (*http.Response, *bufio.Scanner, context.CancelFunc) { return open("", "Last-Event-ID: "+id) },
		func() (*http.Response, *bufio.Scanner, context.CancelFunc) { return open("?after=" + id) },
	} {
		_, lines, _ := back()
		if _, kind, data := next(lines); kind != string(live.KindSecond) || !strings.Contains(data, `"ok":7`) {
			t.Errorf("after the reconnect: %s %s", kind, data)
		}
	}
	ended := b.run("ended", true)
	if code, _, body := b.request(http.MethodGet, "/api/runs/"+ended+"/live", ""); code != http.StatusNotFound ||
		!strings.Contains(body, "not running") {
		t.Errorf("the stream of a finished run: %d %s", code, body)
	}
	if code, _, body := b.request(http.MethodPost, "/api/runs/"+name+"/events", cut, b.own()...); code != http.StatusConflict {
		t.Errorf("an event outside a measurement: %d %s", code, body)
	}
	feed.SetMeasuring(time.Now(), func(context.Context, event.Event) (record.Event, error) {
		return record.Event{}, fmt.Errorf("%w: no", event.ErrInvalid)
	})
	if code, _, body := b.request(http.MethodPost, "/api/runs/"+name+"/events", cut, b.own()...); code != http.StatusBadRequest ||
		!strings.Contains(body, "invalid event") {
		t.Errorf("an impossible event: %d %s", code, body)
	}
}
