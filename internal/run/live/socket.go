package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/event"
)

// SocketFile is the socket's name in a run directory. Only its owner may connect.
const SocketFile = "live.sock"

// eventLimit bounds the text of an event to be fired.
const eventLimit = 64 << 10

// closeTime bounds how long onlookers may take to hear the end.
const closeTime = 2 * time.Second

// Socket is where onlookers of other processes follow a feed.
type Socket struct {
	feed   *Feed
	path   string
	dir    *os.File
	server *http.Server
	done   sync.WaitGroup
	cancel context.CancelFunc
}

// Listen opens the socket of a run directory, over one that a killed run left. The caller
// holds the lock of the directory.
func Listen(dir string, f *Feed, log *slog.Logger) (*Socket, error) {
	s := &Socket{feed: f, path: filepath.Join(dir, SocketFile)}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening the live feed: %w", err)
	}
	var err error
	if s.dir, err = os.Open(dir); err != nil {
		return nil, fmt.Errorf("opening the live feed: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: within(s.dir), Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false) // by a path that has changed by then
		err = os.Chmod(s.path, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the live feed: %w", err), s.dir.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.server = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	s.done.Go(func() {
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("the live feed has ended", "error", err)
		}
	})
	return s, nil
}

// within names the socket by way of an open directory: the path of a socket may have 107 bytes,
// that of a run directory has no such limit.
func within(dir *os.File) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), SocketFile) }

// Close ends the feed, lets onlookers hear so, and removes the socket.
func (s *Socket) Close() error {
	told := s.feed.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil { // somebody does not listen
		_ = s.server.Close()
	}
	s.cancel()
	s.done.Wait()
	return errors.Join(told, os.Remove(s.path), s.dir.Close())
}

func (s *Socket) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stream", s.stream)
	mux.HandleFunc("GET /state", s.state)
	mux.HandleFunc("POST /events", s.fire)
	return mux
}

func (s *Socket) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_ = s.feed.Follow(r.Context(), r.Header.Get("Last-Event-ID"), w, http.NewResponseController(w).Flush) // it went
}

func (s *Socket) state(w http.ResponseWriter, _ *http.Request) {
	state, id, err := s.feed.JSON()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Last-Event-ID", id)
	_, _ = w.Write(state)
}

// Refusal is the answer to an event that cannot be fired.
type Refusal struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

func (s *Socket) fire(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, eventLimit))
	if err != nil {
		answer(w, http.StatusBadRequest, Refusal{Error: err.Error()})
		return
	}
	e, err := event.Parse(body)
	if err == nil {
		got, fired := s.feed.Fire(r.Context(), e)
		if err = fired; err == nil {
			answer(w, http.StatusOK, got)
			return
		}
	}
	status := http.StatusBadRequest
	if errors.Is(err, ErrNotMeasuring) || errors.Is(err, event.ErrNotRunning) {
		status = http.StatusConflict
	}
	answer(w, status, Refusal{Error: err.Error(), Hint: advice.Of(err)})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
