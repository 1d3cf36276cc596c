package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/record"
)

// ErrNotLive says that no run is telling of itself in a directory.
var ErrNotLive = errors.New("the run is not under way")

// ErrRefused says that a run does not fire an event.
var ErrRefused = errors.New("the event is not fired")

// ErrWrong is ErrRefused where the event is no event of that run, whenever it came.
var ErrWrong = fmt.Errorf("%w", ErrRefused)

// Transport carries HTTP requests to the socket of a run directory, whatever their host.
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
	conn, err := new(net.Dialer).DialContext(ctx, "unix", within(d))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, ErrNotLive
	}
	return conn, err
}

// Tells is nil where a run tells of itself in a directory, and ErrNotLive where none does.
func Tells(ctx context.Context, dir string) error {
	conn, err := dial(ctx, dir)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Read returns the present state of the run in a directory; ErrNotLive when none goes on.
func Read(ctx context.Context, dir string) (State, error) {
	var s State
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://run/state", nil)
	if err != nil {
		return s, err
	}
	answer, err := (&http.Client{Transport: Transport(dir)}).Do(r)
	if err != nil {
		return s, fmt.Errorf("reading the live state of %s: %w", dir, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("reading the live state of %s: %s", dir, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("reading the live state of %s: %w", dir, err)
	}
	return s, nil
}

// Send fires an event, in YAML or JSON, in the run of a directory, and returns what became of
// it. ErrNotLive when none goes on, ErrRefused when the run does not fire it.
func Send(ctx context.Context, dir string, text []byte) (record.Event, error) {
	var e record.Event
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://run/events", bytes.NewReader(text))
	if err != nil {
		return e, err
	}
	answer, err := (&http.Client{Transport: Transport(dir)}).Do(r)
	if err != nil {
		return e, fmt.Errorf("firing an event in %s: %w", dir, err)
	}
	defer answer.Body.Close()
	decode := json.NewDecoder(answer.Body)
	if answer.StatusCode != http.StatusOK {
		var said Refusal
		if err := decode.Decode(&said); err != nil {
			return e, fmt.Errorf("firing an event in %s: %s", dir, answer.Status)
		}
		reason := ErrRefused
		if answer.StatusCode == http.StatusBadRequest {
			reason = ErrWrong
		}
		err := fmt.Errorf("%w: %s", reason, said.Error)
		if said.Hint != "" {
			err = advice.With(err, "%s", said.Hint)
		}
		return e, err
	}
	if err := decode.Decode(&e); err != nil {
		return e, fmt.Errorf("firing an event in %s: %w", dir, err)
	}
	return e, nil
}
