package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"skerry/internal/record"
	"skerry/internal/report/webdata"
)

// Detail is a run with its trials.
type Detail struct {
	Entry
	Command  []string       `json:"command"`
	Host     record.Machine `json:"host"`
	Engine   record.Engine  `json:"engine"`
	Seed     uint64         `json:"seed"`
	Warnings []string       `json:"warnings,omitempty"`
	// Remarks tell what was not as it should be with the run's files.
	Remarks []string   `json:"remarks,omitempty"`
	Ended   []TrialRow `json:"ended"`
	Cells   []Cell     `json:"cells"`
}

// TrialRow is a trial that has ended.
type TrialRow struct {
	ID         int            `json:"id"`
	Cell       int            `json:"cell"`
	Repetition int            `json:"repetition"`
	Parameters map[string]any `json:"parameters"`
	State      string         `json:"state"`
	Error      string         `json:"error,omitempty"`
	Verdict    record.Verdict `json:"verdict"`
	Goodput    float64        `json:"goodput_ops_s"`
	CI95       float64        `json:"goodput_ci95_ops_s"`
	DurationS  float64        `json:"duration_s"`
	// Operations are the response times of each kind, READ, UPDATE ..., that has ended ok.
	Operations map[string]Tail `json:"operations"`
	Events     int             `json:"events"`
	ByHand     int             `json:"fired_by_hand,omitempty"`
}

// Tail is the slow end of a latency, in microseconds, over so many operations.
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

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	all, err := s.runs.list()
	if err != nil {
		fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, all)
}

// opened is the run that a request is about, and its directory's path.
func (s *Server) opened(r *http.Request) (path string, d *record.Dir, err error) {
	if path, err = s.runs.path(r.PathValue("run")); err != nil {
		return "", nil, err
	}
	d, err = record.Open(path)
	return path, d, err
}

func (s *Server) detail(w http.ResponseWriter, r *http.Request) {
	path, d, err := s.opened(r)
	if err != nil {
		fail(w, err)
		return
	}
	out := Detail{Entry: read(path), Command: append([]string{}, d.Run.Command...), Host: d.Run.Host, Engine: d.Run.Engine, Seed: d.Run.Seed, Warnings: d.Run.Warnings,
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
		row := TrialRow{ID: t.ID, Cell: cell[t.ID], Repetition: t.Repetition, Parameters: t.Parameters, State: t.State, Error: t.Error, Verdict: t.Verdict,
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
	writeJSON(w, http.StatusOK, out)
}

func (s *Server) notes(w http.ResponseWriter, r *http.Request) {
	path, err := s.runs.path(r.PathValue("run"))
	if err != nil {
		fail(w, err)
		return
	}
	n, err := record.ReadNotes(path)
	if err != nil {
		fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, n)
}

// notesLimit bounds what notes may be sent as.
const notesLimit = 256 << 10

func (s *Server) writeNotes(w http.ResponseWriter, r *http.Request) {
	path, err := s.runs.path(r.PathValue("run"))
	if err != nil {
		fail(w, err)
		return
	}
	var n record.Notes
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, notesLimit)).Decode(&n); err != nil {
		refuse(w, http.StatusBadRequest, "the notes cannot be read: "+err.Error(), "")
		return
	}
	s.runs.mu.Lock() // one writer at a time
	defer s.runs.mu.Unlock()
	written, err := record.WriteNotes(path, n)
	if err != nil {
		fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, written)
}

// trialsBeside thins a trial's series as a report of so many trials does: a comparison lays several over each other.
const trialsBeside = 20

// trial tells what a report has of one trial: its series.
func (s *Server) trial(w http.ResponseWriter, r *http.Request) {
	_, d, err := s.opened(r)
	if err != nil {
		fail(w, err)
		return
	}
	id, _ := strconv.Atoi(r.PathValue("trial")) // what is no number is no trial
	at := slices.IndexFunc(d.Summary.Trials, func(t record.Trial) bool { return t.ID == id && t.State == record.TrialOK })
	if at < 0 {
		fail(w, fmt.Errorf("%w: %s has no trial %s that measured", record.ErrNoTrial, d.Run.Name, r.PathValue("trial")))
		return
	}
	writeJSON(w, http.StatusOK, webdata.DetailOf(d, d.Summary.Trials[at], trialsBeside))
}
