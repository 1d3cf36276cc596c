package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/machine/host"
)

// dyingMessage is what a server that fails says before it does.
const dyingMessage = "the last word of the server"

// A server that never gets ready is waited for at least so long once it runs, and up to
// mostPatience where the others are not ready either by then.
const (
	minNotReadyWait = 3 * time.Second
	maxNotReadyWait = 8 * minNotReadyWait
)

var errWaitedEnough = errors.New("waited long enough")

// testFaults starts clusters that cannot start: each start ends with an error that says
// why, and leaves nothing behind.
func (s *suite) testFaults(t *testing.T) {
	s.hosts = s.newHosts(t)
	bad := s.hosts[s.Nodes-1]

	t.Run("a server that dies", func(t *testing.T) {
		bad.override("echo "+dyingMessage+"; exit 3", nil)
		defer bad.override("", nil)
		err := s.startBadly(t.Context(), t)
		s.expectWords(t, err, dyingMessage, bad.Name(), "exit status 3")
	})
	t.Run("a server that never gets ready", func(t *testing.T) {
		defer bad.override("", nil)
		var err error
		for wait := minNotReadyWait; wait <= maxNotReadyWait && (err == nil || !strings.Contains(err.Error(), dyingMessage)); wait *= 2 {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			bad.override("echo "+dyingMessage+"; exec sleep 1000", func(host.Process) {
				time.AfterFunc(wait, func() { cancel(errWaitedEnough) })
			})
			err = s.startBadly(ctx, t)
		}
		s.expectWords(t, err, dyingMessage, bad.Name())
	})
	t.Run("a port that is taken", func(t *testing.T) {
		if s.Port == 0 {
			t.Skip("no port to take")
		}
		var l net.Listener
		if err := bad.Host.(host.Inside).Do(func() (err error) {
			l, err = net.Listen("tcp4", net.JoinHostPort(bad.Addr(), fmt.Sprint(s.Port)))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		err := s.startBadly(t.Context(), t)
		s.expectWords(t, err, fmt.Sprint("port ", s.Port), bad.Name())
		if advice.Of(err) == "" {
			t.Errorf("no advice with %v", err)
		}
	})
	t.Run("a start that is cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		env := s.newEnv(t)
		env.Progress = func(string) { cancel() }
		c, err := s.db.Start(ctx, env)
		if err == nil {
			t.Fatalf("it was started; ending it: %v", c.Stop(t.Context()))
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that it was cancelled", err)
		}
		s.checkNothingLeft(t)
	})
}

// startBadly starts a cluster that cannot start.
func (s *suite) startBadly(ctx context.Context, t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	c, err := s.db.Start(ctx, s.newEnv(t))
	if err == nil {
		t.Fatalf("it was started; ending it: %v", c.Stop(t.Context()))
	}
	s.checkNothingLeft(t)
	return err
}

func (s *suite) expectWords(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q: %v", w, err)
		}
	}
}
