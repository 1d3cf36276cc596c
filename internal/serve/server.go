// Package serve is the dashboard's HTTP server. It follows running experiments, fires events into
// them, lists the runs of a folder and compares them. It writes the notes of a run and, if
// configured, experiment and needs files that it can start.
//
//	browser ─► headers ─ token ─ host ─ same site? ─► page, runs, notes, compare, report, metrics
//	                                                     │
//	                                                     └─► DIR/live.sock of a running experiment
package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/record"
	"skerry/internal/report/compare"
	"skerry/internal/run/draft"
	"skerry/internal/run/live"
)

// Config configures a server.
type Config struct {
	// Runs is the folder of run directories. It need not exist.
	Runs string
	// Token, unless empty, is required of every request. See CheckToken.
	Token string
	// Port is the port of the listener. It is part of the cookie name, because cookies do not
	// distinguish ports.
	Port    int
	Version string
	// Page holds the files of the dashboard.
	Page fs.FS
	// Report writes the report of a run.
	Report func(io.Writer, *record.Dir) error
	// Choices is the folder of choices, "" for none. It need not exist.
	Choices string
	// Databases can be named by experiments, Registry lists those that skerry choose compares.
	// Experiments is the folder of saved experiments, "" to disable saving.
	Databases   map[string]database.Database
	Registry    []database.About
	Experiments string
	// Launch starts experiments and choices, nil to disable.
	Launch Launch
	// AllowCommands lets pages start experiments, and fire events, that run commands of the user.
	AllowCommands bool
	Log           *slog.Logger
}

// Server answers browsers and Prometheus.
type Server struct {
	Config
	runs    *runs
	reports *reports
	jobs    *jobs
	// csrf is the token of requests that change something. session is the cookie of a browser that
	// presented the token.
	csrf, session string
}

const pageFile = "dashboard.html"

// New returns a server.
func New(c Config) (*Server, error) {
	st, err := os.Stat(c.Runs)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the first run creates it
	case err != nil:
		return nil, fmt.Errorf("open folder of runs: %w", err)
	case !st.IsDir():
		return nil, advice.With(fmt.Errorf("%s is not a folder", c.Runs), "name the folder of run directories, such as runs")
	}
	if _, err := fs.Stat(c.Page, pageFile); err != nil {
		return nil, fmt.Errorf("open dashboard page: %w", err)
	}
	if c.Token != "" {
		if err := CheckToken(c.Token); err != nil {
			return nil, err
		}
	}
	return &Server{Config: c, runs: newRuns(c.Runs), reports: &reports{write: c.Report}, jobs: &jobs{wrote: map[string]string{}},
		csrf: rand.Text(), session: rand.Text()}, nil
}

// Handler returns the handler of all requests, behind the guards.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := answer(w, r); err != nil {
				writeError(w, err)
			}
		})
	}
	mux.HandleFunc("GET /{$}", s.page)
	mux.Handle("GET /assets/", s.assets())
	mux.HandleFunc("GET /login", s.loginPage)
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("GET /metrics", s.metrics)
	handle("GET /runs/{run}/report", s.report)
	mux.HandleFunc("GET /api/session", s.sessionInfo)
	handle("GET /api/runs", s.list)
	handle("GET /api/runs/{run}", s.detail)
	handle("GET /api/runs/{run}/trials/{trial}", s.trial)
	handle("GET /api/runs/{run}/notes", s.notes)
	handle("PUT /api/runs/{run}/notes", s.writeNotes)
	handle("GET /api/runs/{run}/live", s.follow)
	handle("POST /api/runs/{run}/events", s.fire)
	handle("GET /api/compare", s.compare)
	handle("GET /api/choices", s.choices)
	handle("GET /choices/{choice}/{page}", s.choice)
	mux.HandleFunc("GET /api/form", s.form)
	mux.HandleFunc("POST /api/draft", draftFile[draft.Experiment](s))
	mux.HandleFunc("POST /api/sketch", draftFile[draft.Needs](s))
	mux.HandleFunc("POST /api/validate", s.validate)
	handle("PUT /api/experiment", s.save)
	handle("POST /api/job", s.start)
	mux.HandleFunc("GET /api/job", s.job)
	mux.HandleFunc("DELETE /api/job", s.stop)
	return headers(s.tokenGuard(s.siteGuard(mux)))
}

// headerTime bounds the time to send request headers, shutdownTime the requests in progress at shutdown.
const (
	headerTime   = 10 * time.Second
	shutdownTime = 2 * time.Second
)

// Serve answers requests until ctx ends. It also ends the job that a page started.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.jobs.close()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return work },
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		cancel() // ends the streams
		end, done := context.WithTimeout(context.Background(), shutdownTime)
		defer done()
		stopped <- server.Shutdown(end)
	})
	err := server.Serve(l)
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve dashboard: %w", err)
	}
	if err := <-stopped; err != nil {
		_ = server.Close()
	}
	return nil
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeFileFS(w, r, s.Page, pageFile)
}

// assets serves the files of the page. Their names change with their content.
func (s *Server) assets() http.Handler {
	folder, err := fs.Sub(s.Page, "assets")
	if err != nil { // the name is valid
		return http.NotFoundHandler()
	}
	files := http.StripPrefix("/assets/", http.FileServerFS(folder))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
		files.ServeHTTP(w, r)
	})
}

// Session is the information that a page needs for requests.
type Session struct {
	Version string `json:"version"`
	CSRF    string `json:"csrf"`
	Runs    string `json:"runs"` // the folder
}

func (s *Server) sessionInfo(w http.ResponseWriter, _ *http.Request) {
	live.WriteJSON(w, http.StatusOK, Session{Version: s.Version, CSRF: s.csrf, Runs: s.Runs})
}

func writeRefusal(w http.ResponseWriter, status int, message, hint string) {
	live.WriteJSON(w, status, live.Refusal{Error: message, Hint: hint})
}

func writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, errUnknownRun), errors.Is(err, record.ErrNoTrial), errors.Is(err, fs.ErrNotExist), errors.Is(err, live.ErrNotLive):
		status = http.StatusNotFound
	case errors.Is(err, record.ErrNotes), errors.Is(err, compare.ErrCells), errors.Is(err, errInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, errCommands):
		status = http.StatusForbidden
	case errors.Is(err, record.ErrChanged), errors.Is(err, errExists), errors.Is(err, errBusy), errors.Is(err, errNoLaunch):
		status = http.StatusConflict
	case errors.Is(err, record.ErrNotRun), errors.Is(err, record.ErrNewer), errors.Is(err, record.ErrDamaged):
		status = http.StatusUnprocessableEntity
	}
	writeRefusal(w, status, err.Error(), advice.Of(err))
}
