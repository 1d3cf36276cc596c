package serve

import (
	"bytes"
	"io"
	"net/http"
	"sync"

	"skerry/internal/record"
	"skerry/internal/report/compare"
)

// reportPolicy shuts a report into an origin of its own: what a run directory from elsewhere
// may hold can neither read nor fire anything here.
const reportPolicy = "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " +
	"img-src data: blob:; font-src data:; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// reportsMost is how many reports are kept.
const reportsMost = 4

// reports are the pages that were made last, each of a run as it was.
type reports struct {
	write func(io.Writer, *record.Dir) error

	mu    sync.Mutex // one is made at a time
	pages []madeReport
}

type madeReport struct {
	path, stamp string
	page        []byte
}

// of makes the report of a run, unless it is there already.
func (r *reports) of(path string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	stamp := stamp(path)
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
	r.pages = r.pages[max(0, len(r.pages)-reportsMost):]
	return b.Bytes(), nil
}

// report shows the report of a run, made anew from its data: a file of the run directory is
// not believed to be what it is called.
func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	path, err := s.runs.path(r.PathValue("run"))
	if err != nil {
		fail(w, err)
		return
	}
	page, err := s.reports.of(path)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Security-Policy", reportPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page)
}

// compare sets two runs, or cells of them, side by side: ?a=RUN&b=RUN, and ?a_cell= and
// ?b_cell= where cells are meant.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	var args []string
	for _, side := range []string{"a", "b"} {
		path, err := s.runs.path(r.FormValue(side))
		if err != nil {
			fail(w, err)
			return
		}
		if cell := r.FormValue(side + "_cell"); cell != "" {
			path += ":" + cell
		}
		args = append(args, path)
	}
	got, err := compare.Runs(args, 1)
	if err != nil {
		fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, got)
}
