package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"sync"
	"time"

	"skerry/internal/base/linger"
	"skerry/internal/event"
	"skerry/internal/record"
	"skerry/internal/report/compare"
	"skerry/internal/report/webdata"
	"skerry/internal/run/live"
)

// Detail is a run with its trials.
type Detail struct {
	Entry
	Command  []string       `json:"command"`
	Host     record.Machine `json:"host"`
	Engine   record.Engine  `json:"engine"`
	Seed     uint64         `json:"seed"`
	Warnings []string       `json:"warnings,omitempty"`
	// Remarks report problems of the run's files.
	Remarks []string   `json:"remarks,omitempty"`
	Ended   []TrialRow `json:"ended"`
	Cells   []Cell     `json:"cells"`
}

// TrialRow is an ended trial.
type TrialRow struct {
	ID int `json:"id"`
	// Cell is all repetitions of one combination of parameters.
	Cell       int            `json:"cell"`
	Repetition int            `json:"repetition"`
	Parameters map[string]any `json:"parameters"`
	State      string         `json:"state"`
	Error      string         `json:"error,omitempty"`
	Verdict    record.Verdict `json:"verdict"`
	Goodput    float64        `json:"goodput_ops_s"`
	CI95       float64        `json:"goodput_ci95_ops_s"`
	DurationS  float64        `json:"duration_s"`
	// Operations are the response times by kind, READ, UPDATE ..., of successful operations.
	Operations map[string]Tail `json:"operations"`
	Events     int             `json:"events"`
	ByHand     int             `json:"fired_by_hand,omitempty"`
}

// Tail holds high percentiles of a latency, in microseconds.
type Tail struct {
	Count int64   `json:"count"`
	P95   float64 `json:"p95_us"`
	P99   float64 `json:"p99_us"`
}

// Cell is what can be compared: all repetitions of one combination of parameters.
type Cell struct {
	Number     int            `json:"number"`
	Parameters map[string]any `json:"parameters"`
	Ended      int            `json:"ended_ok"`
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) error {
	all, err := s.runs.list()
	if err != nil {
		return err
	}
	live.WriteJSON(w, http.StatusOK, all)
	return nil
}

func (s *Server) openRun(r *http.Request) (path string, d *record.Dir, err error) {
	if path, err = s.runs.path(r.PathValue("run")); err != nil {
		return "", nil, err
	}
	d, err = record.Open(path)
	return path, d, err
}

func (s *Server) detail(w http.ResponseWriter, r *http.Request) error {
	path, d, err := s.openRun(r)
	if err != nil {
		return err
	}
	out := Detail{Entry: readEntry(path), Command: append([]string{}, d.Run.Command...), Host: d.Run.Host, Engine: d.Run.Engine,
		Seed: d.Run.Seed, Warnings: d.Run.Warnings,
		Remarks: d.Notes, Ended: []TrialRow{}, Cells: []Cell{}}
	cell, at := map[int]int{}, map[int]int{}
	for _, p := range d.Run.Plan {
		cell[p.ID] = p.Cell
		if _, known := at[p.Cell]; !known {
			at[p.Cell] = len(out.Cells)
			out.Cells = append(out.Cells, Cell{Number: p.Cell, Parameters: p.Parameters})
		}
	}
	for _, t := range d.Summary.Trials {
		row := TrialRow{ID: t.ID, Cell: cell[t.ID], Repetition: t.Repetition, Parameters: t.Parameters, State: t.State, Error: t.Error,
			Verdict: t.Verdict,
			Goodput: t.Goodput, CI95: t.Interval, DurationS: t.DurationS, Operations: map[string]Tail{}, Events: len(t.Events)}
		for name, o := range t.Operations {
			if l := o.Latency(); o.Count > 0 {
				row.Operations[name] = Tail{Count: o.Count, P95: l.P95, P99: l.P99}
			}
		}
		for _, e := range t.Events {
			if e.Source != "" {
				row.ByHand++
			}
		}
		if i, ok := at[row.Cell]; ok && t.State == record.TrialOK {
			out.Cells[i].Ended++
		}
		out.Ended = append(out.Ended, row)
	}
	live.WriteJSON(w, http.StatusOK, out)
	return nil
}

func (s *Server) notes(w http.ResponseWriter, r *http.Request) error {
	path, err := s.runs.path(r.PathValue("run"))
	if err != nil {
		return err
	}
	n, err := record.ReadNotes(path)
	if err != nil {
		return err
	}
	live.WriteJSON(w, http.StatusOK, n)
	return nil
}

func (s *Server) writeNotes(w http.ResponseWriter, r *http.Request) error {
	path, err := s.runs.path(r.PathValue("run"))
	if err != nil {
		return err
	}
	var n record.Notes
	if !readBody(w, r, &n) {
		return nil
	}
	s.runs.mu.Lock() // one writer at a time
	defer s.runs.mu.Unlock()
	written, err := record.WriteNotes(path, n)
	if err != nil {
		return err
	}
	live.WriteJSON(w, http.StatusOK, written)
	return nil
}

// assumedTrials sets the resolution of a trial's series to that of a report with this many trials,
// because a comparison shows several.
const assumedTrials = 20

func (s *Server) trial(w http.ResponseWriter, r *http.Request) error {
	_, d, err := s.openRun(r)
	if err != nil {
		return err
	}
	id, _ := strconv.Atoi(r.PathValue("trial")) // 0 is not a trial
	at := slices.IndexFunc(d.Summary.Trials, func(t record.Trial) bool { return t.ID == id && t.State == record.TrialOK })
	if at < 0 {
		return fmt.Errorf("%w: %s has no successful trial %s", record.ErrNoTrial, d.Run.Name, r.PathValue("trial"))
	}
	live.WriteJSON(w, http.StatusOK, webdata.NewDetail(d, d.Summary.Trials[at], assumedTrials))
	return nil
}

// reportPolicy isolates a report in a separate origin, so that a foreign run directory cannot
// access this server.
const reportPolicy = "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; script-src 'unsafe-inline'; " +
	"style-src 'unsafe-inline'; " +
	"img-src data: blob:; font-src data:; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const maxReports = 4

type reports struct {
	write func(io.Writer, *record.Dir) error

	mu    sync.Mutex // serialises rendering
	pages []madeReport
}

type madeReport struct {
	path, stamp string
	page        []byte
}

// get returns the report of a run. It renders the report again if the run changed.
func (r *reports) get(path string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamp := fileStamp(path)
	for _, m := range r.pages {
		if m.path == path && m.stamp == stamp {
			return m.page, nil
		}
	}
	d, err := record.Open(path)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := r.write(&b, d); err != nil {
		return nil, err
	}
	r.pages = append(r.pages, madeReport{path, stamp, b.Bytes()})
	r.pages = r.pages[max(0, len(r.pages)-maxReports):]
	return b.Bytes(), nil
}

// report serves the report of a run. It is rendered from the data, because a report.html file from
// elsewhere is not trusted.
func (s *Server) report(w http.ResponseWriter, r *http.Request) error {
	path, err := s.runs.path(r.PathValue("run"))
	if err != nil {
		return err
	}
	page, err := s.reports.get(path)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", reportPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page)
	return nil
}

// compare compares two runs, ?a=RUN&b=RUN, or cells of them, &a_cell=CELL&b_cell=CELL.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) error {
	var args []string
	for _, side := range []string{"a", "b"} {
		path, err := s.runs.path(r.FormValue(side))
		if err != nil {
			return err
		}
		if cell := r.FormValue(side + "_cell"); cell != "" {
			path += ":" + cell
		}
		args = append(args, path)
	}
	got, err := compare.Runs(args, 1)
	if err != nil {
		return err
	}
	live.WriteJSON(w, http.StatusOK, got)
	return nil
}

const eventLimit = 64 << 10

// feedTimeout is how long a new run may take to open its socket. feedPause is the polling interval.
const feedTimeout, feedPause = 10 * time.Second, 50 * time.Millisecond

// follow forwards the feed of a run as server-sent events. A reconnecting browser sends the last
// event ID in a header or as ?after=.
func (s *Server) follow(w http.ResponseWriter, r *http.Request) error {
	after := r.Header.Get("Last-Event-ID")
	if q := r.URL.Query().Get("after"); after == "" {
		after = q
	}
	if dir, err := s.runs.path(r.PathValue("run")); err == nil {
		awaitFeed(r.Context(), dir)
	}
	return s.forward(w, r, "/stream", http.Header{"Last-Event-Id": {after}})
}

// awaitFeed waits until a new run opens its socket. On a timeout, the following request reports the
// error.
func awaitFeed(ctx context.Context, dir string) {
	ctx, cancel := context.WithTimeout(ctx, feedTimeout)
	defer cancel()
	for errors.Is(live.CheckLive(ctx, dir), live.ErrNotLive) && record.IsRunning(dir) {
		if linger.For(ctx, feedPause) != nil {
			return
		}
	}
}

func (s *Server) fire(w http.ResponseWriter, r *http.Request) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, eventLimit))
	if err != nil {
		return fmt.Errorf("%w: read event: %w", errInvalid, err)
	}
	if e, err := event.Parse(text); err == nil { // the run reports an invalid event
		if all := e.Commands(); len(all) > 0 {
			if err := s.refuseCommands(all[0]); err != nil {
				return err
			}
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return s.forward(w, r, "/events", http.Header{"Content-Type": {"application/json"}})
}

// forward passes a request to the socket of a run, without the browser's headers.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, path string, header http.Header) error {
	dir, err := s.runs.path(r.PathValue("run"))
	if err != nil {
		return err
	}
	transport := live.Transport(dir)
	defer transport.CloseIdleConnections()
	(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.URL.Path, p.Out.URL.RawPath, p.Out.URL.RawQuery = "http", "run", path, "", ""
			p.Out.Host, p.Out.Header = "run", header
		},
		ErrorLog:     nil,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { writeError(w, err) },
	}).ServeHTTP(w, r)
	return nil
}
