// Package serve is the dashboard's HTTP server. It follows running experiments, fires events into
// them, lists the runs of a folder and compares them. It writes the notes of a run and, if
// configured, experiment and needs files that it can start.
//
//	browser ─► headers ─ token ─ host ─ same site? ─► page, runs, notes, compare, report, metrics
//	                                                     │
//	                                                     └─► DIR/live.sock of a running experiment
package serve

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
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
	// Page holds the files of the dashboard, each compressed with gzip under its name and ".gz".
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

// pageFile is the first file of the dashboard. Files are stored compressed, under their name and
// gzipSuffix.
const (
	pageFile   = "dashboard.html"
	gzipSuffix = ".gz"
)

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
	if _, err := fs.Stat(c.Page, pageFile+gzipSuffix); err != nil {
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
	handle("GET /{$}", s.page)
	handle("GET /assets/{file}", s.asset)
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

func (s *Server) page(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-cache")
	return s.writeFile(w, r, pageFile)
}

// asset serves a file of the page. The name of the file changes with its content.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	return s.writeFile(w, r, "assets/"+r.PathValue("file"))
}

// writeFile sends a file of the dashboard, compressed if the client accepts that.
func (s *Server) writeFile(w http.ResponseWriter, r *http.Request, name string) error {
	f, err := s.Page.Open(name + gzipSuffix)
	if err != nil {
		w.Header().Set("Cache-Control", "no-store")
		return fmt.Errorf("open dashboard file: %w", err)
	}
	defer f.Close()
	var content io.Reader = f
	h := w.Header()
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	h.Set("Vary", "Accept-Encoding")
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
	} else if content, err = gzip.NewReader(f); err != nil {
		return fmt.Errorf("read dashboard file %s: %w", name, err)
	}
	_, _ = io.Copy(w, content) // the peer may be gone
	return nil
}

// acceptsGzip reports whether a client accepts the encoding gzip by name.
func acceptsGzip(r *http.Request) bool {
	for _, values := range r.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(values, ",") {
			name, weight, _ := strings.Cut(coding, ";")
			if strings.TrimSpace(name) == "gzip" {
				q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
				return err != nil || q > 0
			}
		}
	}
	return false
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
