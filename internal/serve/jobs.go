package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"skerry/internal/base/tail"
)

// Launch runs the experiment in a file to its end, or chooses for the needs in it, and writes what it says; when ctx ends it
// interrupts that and waits for it.
type Launch func(ctx context.Context, file string, needs bool, said io.Writer) error

// Job is the run, or the choice, that was started last from a page.
type Job struct {
	File  string `json:"file"` // "" where none was
	Needs bool   `json:"needs"`
	Runs  bool   `json:"runs"`
	// Error says how it failed, Said is the end of what it wrote then.
	Error string `json:"error,omitempty"`
	Said  string `json:"said,omitempty"`
}

// errBusy says that a run goes on: two would disturb each other's figures.
var errBusy = errors.New("a run is under way already")

// errNoLaunch says that a server starts nothing.
var errNoLaunch = errors.New("this server starts no runs")

// jobs owns the run that pages start: at most one, which ends with the server.
type jobs struct {
	mu     sync.Mutex
	wrote  map[string]string // files, with their content
	last   Job
	stop   context.CancelFunc
	closed bool
	done   sync.WaitGroup
}

// outputTail is how much of what a run says is kept, in bytes.
const outputTail = 4 << 10

// begin starts a run.
func (j *jobs) begin(launch Launch, file string, needs bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.last.Runs || j.closed {
		return errBusy
	}
	ctx, cancel := context.WithCancel(context.Background())
	j.last, j.stop = Job{File: file, Needs: needs, Runs: true}, cancel
	j.done.Go(func() {
		defer cancel()
		said := tail.New(outputTail)
		err := launch(ctx, file, needs, said)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.last.Runs = false
		if err != nil && ctx.Err() == nil {
			j.last.Error, j.last.Said = err.Error(), said.String()
		}
	})
	return nil
}

// interrupt asks the run to end.
func (j *jobs) interrupt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stop != nil {
		j.stop()
	}
}

// close ends the run, and waits for that.
func (j *jobs) close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.interrupt()
	j.done.Wait()
}

func (j *jobs) current() Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// busy tells whether a run or a choice of the folders goes on.
func (s *Server) busy() (bool, error) {
	all, err := s.runs.list()
	if err != nil {
		return false, err
	}
	choices, err := s.listChoices()
	return slices.ContainsFunc(all, func(e Entry) bool { return e.State == StateRunning }) ||
		slices.ContainsFunc(choices, func(c Choice) bool { return c.Running }), err
}

// start saves an experiment and runs it, where no other run of the folder goes on.
func (s *Server) start(w http.ResponseWriter, r *http.Request) {
	var t Text
	if !readBody(w, r, &t) {
		return
	}
	if s.Launch == nil {
		writeError(w, errNoLaunch)
		return
	}
	busy, err := s.busy()
	if err == nil && busy {
		err = errBusy
	}
	if err != nil {
		writeError(w, err)
		return
	}
	file, err := s.saveFile(t)
	if err == nil {
		err = s.jobs.begin(s.Launch, file, t.Needs != "")
	}
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusAccepted, Saved{File: file})
}

func (s *Server) job(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.jobs.current())
}

func (s *Server) stop(w http.ResponseWriter, _ *http.Request) {
	s.jobs.interrupt()
	writeJSON(w, http.StatusOK, s.jobs.current())
}
