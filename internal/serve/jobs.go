package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"skerry/internal/base/advice"
	"skerry/internal/base/tail"
	"skerry/internal/run/live"
)

// Launch runs the experiment in a file, or chooses for the needs in it, and writes the output. If
// ctx ends, it interrupts the run and waits for it.
type Launch func(ctx context.Context, file string, needs bool, said io.Writer) error

// Job is the run or choice that a page started last.
type Job struct {
	File  string `json:"file"` // "" if there was none
	Needs bool   `json:"needs"`
	Runs  bool   `json:"runs"`
	// Error is the reason of a failure, Said the end of its output.
	Error string `json:"error,omitempty"`
	Said  string `json:"said,omitempty"`
}

// errBusy means that a run is in progress. Concurrent runs would disturb each other's figures.
var errBusy = errors.New("another run is in progress")

var errNoLaunch = errors.New("starting runs is disabled")

// errCommands means that other machines can reach this server. It therefore runs no commands, and reads no passwords for
// servers that a page names.
var errCommands = errors.New("this dashboard does not run commands or use secrets of this machine, because other machines can reach it")

// refuseCommands returns errCommands with a command or secret of an experiment, unless the server allows them.
func (s *Server) refuseCommands(command string) error {
	if s.AllowCommands || command == "" {
		return nil
	}
	return advice.With(fmt.Errorf("%w (%s)", errCommands, command),
		"start it in a terminal with skerry run, or restart the dashboard on a loopback address or with skerry serve --allow-commands")
}

// jobs owns the job that pages start: at most one, which ends with the server.
type jobs struct {
	mu     sync.Mutex
	wrote  map[string]string // content of saved files, by path
	last   Job
	stop   context.CancelFunc
	closed bool
	done   sync.WaitGroup
}

const outputTail = 4 << 10

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

func (j *jobs) interrupt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stop != nil {
		j.stop()
	}
}

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

func (s *Server) busy() (bool, error) {
	all, err := s.runs.list()
	if err != nil {
		return false, err
	}
	choices, err := s.listChoices()
	return slices.ContainsFunc(all, func(e Entry) bool { return e.State == StateRunning }) ||
		slices.ContainsFunc(choices, func(c Choice) bool { return c.Running }), err
}

func (s *Server) start(w http.ResponseWriter, r *http.Request) error {
	var t Text
	if !readBody(w, r, &t) {
		return nil
	}
	if s.Launch == nil {
		return errNoLaunch
	}
	busy, err := s.busy()
	if err == nil && busy {
		err = errBusy
	}
	if err != nil {
		return err
	}
	if err := s.refuseCommands(s.validateText(t).command); err != nil {
		return err
	}
	file, err := s.saveFile(t)
	if err == nil {
		err = s.jobs.begin(s.Launch, file, t.Needs != "")
	}
	if err != nil {
		return err
	}
	live.WriteJSON(w, http.StatusAccepted, Saved{File: file})
	return nil
}

func (s *Server) job(w http.ResponseWriter, _ *http.Request) {
	live.WriteJSON(w, http.StatusOK, s.jobs.current())
}

func (s *Server) stop(w http.ResponseWriter, _ *http.Request) {
	s.jobs.interrupt()
	live.WriteJSON(w, http.StatusOK, s.jobs.current())
}
