package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/machine/host"
	"skerry/test/testkit/testhost"
)

// server is a shell script in the role of a database server; it first prints "up".
func server(h host.Host, script string, ports ...int) Spec {
	return Spec{
		Command: host.Command{Name: "demo", Path: "/bin/sh", Args: []string{"-c", "echo up; " + script}, Log: filepath.Join(h.Dir(), "demo.log")},
		Ports:   ports, Grace: 2 * time.Second,
	}
}

const forever = "exec sleep 1000"

// newSet returns a set that is stopped when the test ends.
func newSet(t *testing.T) *Set {
	t.Helper()
	s := &Set{}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

func start1(t *testing.T, s *Set, h host.Host, script string) *Daemon {
	t.Helper()
	d, err := s.Start(t.Context(), h, server(h, script))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// saidUp reports whether the server has printed "up" once for each start.
func saidUp(h host.Host, starts int) func(context.Context) error {
	return func(context.Context) error {
		text, err := os.ReadFile(filepath.Join(h.Dir(), "demo.log"))
		if err == nil && strings.Count(string(text), "up\n") < starts {
			err = errors.New("the server printed nothing")
		}
		return err
	}
}

func TestStartAndStop(t *testing.T) {
	s, nodes := newSet(t), testhost.Loopback(t, 2)
	for _, h := range nodes {
		d := start1(t, s, h, forever)
		if err := d.Await(t.Context(), 10*time.Second, saidUp(h, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if on := s.RunningOn("n2"); len(on) != 1 || !on[0].Running() || on[0].Name() != "demo" {
		t.Errorf("on n2: %v", on)
	}
	for range 2 {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(s.RunningOn("n1"))+len(s.RunningOn("n2")) > 0 || s.Err() != nil {
		t.Errorf("after the stop: %v, %v, %v", s.RunningOn("n1"), s.RunningOn("n2"), s.Err())
	}
	if logs := s.Logs(); len(logs) != 2 || logs["demo-n1"].Path != filepath.Join(nodes[0].Dir(), "demo.log") {
		t.Errorf("logs %v", logs)
	}
	if _, err := s.Start(t.Context(), nodes[0], server(nodes[0], forever)); !errors.Is(err, ErrStopped) {
		t.Errorf("starting after the stop: error %v", err)
	}
}

// A requested end of a server is distinguished from an unexpected one.
func TestEndsOfAServer(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*testing.T, *Daemon) error
		fail bool
	}{
		"stopped": {func(t *testing.T, d *Daemon) error { return d.Stop(t.Context()) }, false},
		"killed":  {func(_ *testing.T, d *Daemon) error { return d.Kill() }, false},
		"left": {func(_ *testing.T, d *Daemon) error {
			d.MarkLeaving()
			return syscall.Kill(d.PID(), syscall.SIGTERM)
		}, false},
		"killed by a foreign process": {func(_ *testing.T, d *Daemon) error { return syscall.Kill(d.PID(), syscall.SIGKILL) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, h := newSet(t), testhost.Loopback(t, 1)[0]
			d := start1(t, s, h, "echo the last word; "+forever)
			if err := d.Await(t.Context(), 10*time.Second, saidUp(h, 1)); err != nil {
				t.Fatal(err)
			}
			if err := test.end(t, d); err != nil {
				t.Fatal(err)
			}
			if test.fail {
				<-s.Failed()
			} else {
				<-d.Done()
				s.watchers.Wait()
			}
			err := s.Err()
			if !test.fail {
				if err != nil {
					t.Errorf("a requested stop counts as a failure: %v", err)
				}
				return
			}
			for _, want := range []string{"demo on n1", "killed", "the last word"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not contain %q", err, want)
				}
			}
			if !errors.Is(err, ErrEnded) {
				t.Errorf("error %v", err)
			}
			if err := s.Await(t.Context(), func(context.Context) error { return errors.New("no") }); !errors.Is(err, ErrEnded) {
				t.Errorf("waiting for a failed set: %v", err)
			}
		})
	}
}

// The end of a joining server is distinguished from that of a member.
func TestJoining(t *testing.T) {
	s, nodes := newSet(t), testhost.Loopback(t, 2)
	joining := func(h host.Host) *Daemon {
		spec := server(h, forever)
		spec.Joining = true
		d, err := s.Start(t.Context(), h, spec)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	lost, member := joining(nodes[0]), joining(nodes[1])
	if err := syscall.Kill(lost.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-lost.Done()
	if err := lost.Await(t.Context(), time.Minute, saidUp(nodes[1], 2)); !errors.Is(err, ErrEnded) {
		t.Errorf("a server lost while joining: error %v", err)
	}
	if err := lost.ConfirmMember(); !errors.Is(err, ErrEnded) {
		t.Errorf("a server lost before it had joined: error %v", err)
	}
	if err := errors.Join(member.ConfirmMember(), s.Err()); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(member.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Failed()
	if err := s.Err(); !strings.Contains(err.Error(), "n2") {
		t.Errorf("error %v", err)
	}
}

// A server is halted and restarted: one process runs, and the log continues.
func TestRestartedProcess(t *testing.T) {
	s, h := newSet(t), testhost.Loopback(t, 1)[0]
	for i := range 5 {
		d := start1(t, s, h, forever)
		if err := d.Await(t.Context(), 10*time.Second, saidUp(h, i+1)); err != nil {
			t.Fatal(err)
		}
		if on := s.RunningOn("n1"); len(on) != 1 || on[0] != d {
			t.Fatalf("on n1: %v", on)
		}
		if err := d.Kill(); err != nil {
			t.Fatal(err)
		}
		if on := s.RunningOn("n1"); len(on) != 0 {
			t.Fatalf("%d on n1 after the kill", len(on))
		}
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

func TestAwaitGivesUp(t *testing.T) {
	never := func(context.Context) error { return errors.New("not yet") }
	// A request that a server does not answer ends with the server.
	unanswered := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, test := range map[string]struct {
		script  string
		ready   func(context.Context) error
		timeout time.Duration
		is      error
		says    []string
	}{
		"the server fails":                   {"echo oh; exit 3", never, time.Minute, ErrEnded, []string{"exit status 3", "oh"}},
		"the server exits without an answer": {"echo oh; exit 3", unanswered, time.Minute, ErrEnded, []string{"exit status 3", "oh"}},
		"the server exits with 0":            {"exit 0", never, time.Minute, ErrEnded, []string{"exit status 0"}},
		"the server is late":                 {"echo still thinking; " + forever, never, 300 * time.Millisecond, database.ErrNotReady, []string{"still thinking", "not yet"}},
		"the answer is late":                 {forever, unanswered, 300 * time.Millisecond, database.ErrNotReady, []string{"up"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, h := newSet(t), testhost.Loopback(t, 1)[0]
			d := start1(t, s, h, test.script)
			err := d.Await(t.Context(), test.timeout, test.ready)
			if !errors.Is(err, test.is) {
				t.Fatalf("error %v, want %v", err, test.is)
			}
			for _, want := range append(test.says, "demo", "n1") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not contain %q", err, want)
				}
			}
		})
	}
	t.Run("canceled", func(t *testing.T) {
		s, h := newSet(t), testhost.Loopback(t, 1)[0]
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := start1(t, s, h, forever).Await(ctx, time.Minute, never); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if err := s.Await(ctx, never); !errors.Is(err, context.Canceled) {
			t.Errorf("the set returned error %v", err)
		}
	})
}

func TestPortTaken(t *testing.T) {
	s, h := newSet(t), testhost.Loopback(t, 1)[0]
	l, err := net.Listen("tcp4", h.Addr()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = s.Start(t.Context(), h, server(h, forever, 1, l.Addr().(*net.TCPAddr).Port))
	if !errors.Is(err, ErrPortTaken) || advice.Of(err) == "" || !strings.Contains(err.Error(), "demo on n1") {
		t.Errorf("error %v, advice %q", err, advice.Of(err))
	}
	if len(s.RunningOn("n1")) > 0 {
		t.Error("the server was started")
	}
}

// The server ignores SIGTERM.
func TestStubbornServer(t *testing.T) {
	s, h := newSet(t), testhost.Loopback(t, 1)[0]
	d := start1(t, s, h, `trap "" TERM; while :; do sleep 0.1; done`)
	if err := d.Await(t.Context(), 10*time.Second, saidUp(h, 1)); err != nil {
		t.Fatal(err)
	}
	d.spec.Grace = 200 * time.Millisecond
	if err := d.Stop(t.Context()); err != nil || d.Running() {
		t.Errorf("running %v, %v", d.Running(), err)
	}
}

// A set ends while its servers are starting: none remains.
func TestStopWhileStarting(t *testing.T) {
	s, nodes := newSet(t), testhost.Loopback(t, 8)
	ended := make(chan *Daemon, len(nodes))
	for _, h := range nodes {
		go func() {
			d, err := s.Start(t.Context(), h, server(h, forever))
			if err != nil && !errors.Is(err, ErrStopped) {
				t.Error(err)
			}
			ended <- d
		}()
	}
	first := <-ended
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	for _, d := range append([]*Daemon{first}, <-ended, <-ended, <-ended, <-ended, <-ended, <-ended, <-ended) {
		if d != nil && d.Running() {
			t.Errorf("%s on %s is left", d.Name(), d.Host.Name())
		}
	}
}
