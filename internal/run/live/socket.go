package live

import (
	"bytes"
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

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/event"
	"skerry/internal/record"
)

// SocketFile is the socket's name in a run directory. Only its owner may connect.
const SocketFile = "live.sock"

const eventLimit = 64 << 10

// closeTimeout bounds how long followers may take to read the end.
const closeTimeout = 2 * time.Second

// Socket serves a feed to other processes.
type Socket struct {
	feed   *Feed
	path   string
	dir    *os.File
	server *http.Server
	done   sync.WaitGroup
	cancel context.CancelFunc
}

// Listen opens the socket of a run directory and replaces one that a killed run left. The caller must hold
// the lock of the directory.
func Listen(dir string, f *Feed, log *slog.Logger) (*Socket, error) {
	s := &Socket{feed: f, path: filepath.Join(dir, SocketFile)}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open live feed: %w", err)
	}
	var err error
	if s.dir, err = os.Open(dir); err != nil {
		return nil, fmt.Errorf("open live feed: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPath(s.dir), Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false) // its path is invalid by then
		err = os.Chmod(s.path, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open live feed: %w", err), s.dir.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.server = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(
		log.Handler(), slog.LevelDebug,
	),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	s.done.Go(func() {
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("live feed failed", "error", err)
		}
	})
	return s, nil
}

// socketPath names the socket through an open directory: a socket path is limited to 107 bytes, the path of
// a run directory is not.
func socketPath(dir *os.File) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), SocketFile) }

// Close closes the feed, waits for followers, and removes the socket.
func (s *Socket) Close() error {
	feedErr := s.feed.Close()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil { // a follower does not read
		_ = s.server.Close()
	}
	s.cancel()
	s.done.Wait()
	return errors.Join(feedErr, os.Remove(s.path), s.dir.Close())
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
	_ = s.feed.Follow(r.Context(), r.Header.Get("Last-Event-ID"), w, http.NewResponseController(w).Flush) // the follower has gone
}

func (s *Socket) state(w http.ResponseWriter, _ *http.Request) {
	state, id, err := s.feed.StateJSON()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Last-Event-ID", id)
	_, _ = w.Write(state)
}

// Refusal is the response to an event that cannot be fired.
type Refusal struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

func (s *Socket) fire(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, eventLimit))
	if err != nil {
		WriteJSON(w, http.StatusBadRequest, Refusal{Error: err.Error()})
		return
	}
	e, err := event.Parse(body)
	if err == nil {
		got, fired := s.feed.Fire(r.Context(), e)
		if err = fired; err == nil {
			WriteJSON(w, http.StatusOK, got)
			return
		}
	}
	status := http.StatusBadRequest
	if errors.Is(err, ErrNotMeasuring) || errors.Is(err, event.ErrNotRunning) {
		status = http.StatusConflict
	}
	WriteJSON(w, status, Refusal{Error: err.Error(), Hint: advice.Of(err)})
}

// WriteJSON answers a request.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the peer may be gone
}

// ErrNotLive means that no process serves the run directory.
var ErrNotLive = errors.New("the run is not running")

// ErrRefused means that a run does not fire an event.
var ErrRefused = errors.New("event not fired")

// ErrInvalid is an ErrRefused for an event that the run can never fire.
var ErrInvalid = fmt.Errorf("%w", ErrRefused)

// Transport sends HTTP requests to the socket of a run directory, whatever their host.
func Transport(dir string) *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx, dir)
	}}
}

func dial(ctx context.Context, dir string) (net.Conn, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socketPath(d))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, ErrNotLive
	}
	return conn, err
}

// CheckLive returns nil if a process serves the run directory, ErrNotLive if none does.
func CheckLive(ctx context.Context, dir string) error {
	conn, err := dial(ctx, dir)
	if err != nil {
		return err
	}
	return conn.Close()
}

// ReadState returns the current state of a run, ErrNotLive if it is not running.
func ReadState(ctx context.Context, dir string) (State, error) {
	var s State
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://run/state", nil)
	if err != nil {
		return s, err
	}
	answer, err := (&http.Client{Transport: Transport(dir)}).Do(r)
	if err != nil {
		return s, fmt.Errorf("read live state of %s: %w", dir, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("read live state of %s: %s", dir, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("read live state of %s: %w", dir, err)
	}
	return s, nil
}

// SendEvent fires an event, in YAML or JSON, and returns its outcome. The error wraps ErrNotLive or
// ErrRefused.
func SendEvent(ctx context.Context, dir string, text []byte) (record.Event, error) {
	var e record.Event
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://run/events", bytes.NewReader(text))
	if err != nil {
		return e, err
	}
	answer, err := (&http.Client{Transport: Transport(dir)}).Do(r)
	if err != nil {
		return e, fmt.Errorf("fire event in %s: %w", dir, err)
	}
	defer answer.Body.Close()
	decode := json.NewDecoder(answer.Body)
	if answer.StatusCode != http.StatusOK {
		var refusal Refusal
		if err := decode.Decode(&refusal); err != nil {
			return e, fmt.Errorf("fire event in %s: %s", dir, answer.Status)
		}
		reason := ErrRefused
		if answer.StatusCode == http.StatusBadRequest {
			reason = ErrInvalid
		}
		err := fmt.Errorf("%w: %s", reason, refusal.Error)
		if refusal.Hint != "" {
			err = advice.With(err, "%s", refusal.Hint)
		}
		return e, err
	}
	if err := decode.Decode(&e); err != nil {
		return e, fmt.Errorf("fire event in %s: %w", dir, err)
	}
	return e, nil
}
