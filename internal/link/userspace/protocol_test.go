package userspace

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// exhausted is a listener whose first accept fails because no file descriptor is left.
type exhausted struct {
	net.Listener
	once sync.Once
}

func (l *exhausted) Accept() (conn net.Conn, err error) {
	l.once.Do(func() { err = unix.EMFILE })
	if err != nil {
		return nil, err
	}
	return l.Listener.Accept()
}

func TestServeContinuesAfterAcceptError(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	a := &agent{server: &server{hello: hello{PID: 7}}, listener: &exhausted{Listener: l}, log: slog.New(slog.DiscardHandler)}
	var serving sync.WaitGroup
	serving.Go(func() { a.serve(ctx) })
	defer serving.Wait()
	defer stop()
	e, err := Connect(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	if e.PID() != 7 {
		t.Errorf("unexpected answer from process %d", e.PID())
	}
	if err := e.Detach(); err != nil {
		t.Error(err)
	}
}

// One cancelled request is half written, and one waits for its turn.
func TestBlockedEmulatorDoesNotBlockCallers(t *testing.T) {
	ours, its := net.Pipe()
	defer its.Close()
	e := newEngine(ours)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 2)
	for range cap(failed) {
		go func() {
			_, err := e.Stats(ctx)
			failed <- err
		}()
	}
	if _, err := its.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	for range cap(failed) {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("Stats = %v, want Canceled", err)
		}
	}
	if _, err := e.Stats(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("Stats after half a request = %v, want ErrEnded", err)
	}
	if err := e.Detach(); err != nil {
		t.Error(err)
	}
}
