package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"skerry/internal/load/ycsb"
	"skerry/test/testkit/testhost"
)

// TestMain also turns this test program into a driver.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		if err := ServeAgent(context.Background(), os.Stdin, os.Stdout, openMemory); err != nil {
			fmt.Fprintln(os.Stderr, "agent:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// openMemory is a registry of one empty database.
func openMemory(name string) (func(context.Context, map[string]string) (Client, error), error) {
	if name != "memory" {
		return nil, fmt.Errorf("unknown database %q", name)
	}
	m := newMemory()
	return func(ctx context.Context, p map[string]string) (Client, error) {
		switch p["behave"] {
		case "readonly":
			m.before = func(context.Context, int, ycsb.Kind, string) error { return ErrUnsupported }
		case "crash":
			fmt.Fprintln(os.Stderr, "out of memory")
			os.Exit(7)
		}
		return m.open(ctx)
	}, nil
}

func start(t *testing.T, ctx context.Context, s AgentSpec) *Session {
	t.Helper()
	session, err := StartAgent(ctx, testhost.Loopback(t, 1)[0], os.Args[0], s)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func collect(s *Session) (out []Interval) {
	for i := range s.Intervals() {
		out = append(out, i)
	}
	return out
}

func TestSession(t *testing.T) {
	t.Parallel()
	w := workload(t, "a", ycsb.Properties{"recordcount": "3000"})
	s := start(t, context.Background(), AgentSpec{Database: "memory", Spec: Spec{Phase: PhaseLoad, Workload: w, Threads: 4, Target: 2000}})
	intervals := collect(s)
	r, err := s.Wait()
	if err != nil {
		t.Fatal(err)
	}
	check(t, r, intervals)
	select {
	case at := <-s.Began():
		if at.After(intervals[0].Start.Add(leadTime + time.Second)) {
			t.Errorf("the measurement started at %v, but its first interval at %v", at, intervals[0].Start)
		}
	default:
		t.Error("the session did not report the start of the measurement")
	}
	if r.OK != 3000 || len(intervals) < 2 || r.Cores < 1 || r.CPU <= 0 || r.Latency.Service.Max() <= 0 {
		t.Errorf("%+v in %d intervals, %v of CPU, up to %v", r.Counts, len(intervals), r.CPU, r.Latency.Service.Max())
	}
	if r.Spec.Workload.RecordCount != 3000 || r.Spec.AfterStall != Catchup {
		t.Errorf("the agent received the spec %+v", r.Spec)
	}
}

func TestSessionStopsEarly(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*Session, context.CancelFunc){
		"Stop":    func(s *Session, _ context.CancelFunc) { s.Stop() },
		"context": func(_ *Session, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s := start(t, ctx, AgentSpec{Database: "memory", Spec: Spec{Workload: workload(t, "c", nil), Target: 1000, Duration: time.Hour}})
			<-s.Intervals()
			stop(s, cancel)
			collect(s)
			r, err := s.Wait()
			if err != nil || r.Stopped != stoppedAsked || r.Ended() == 0 {
				t.Errorf("%v: %+v, stopped by %q", err, r.Counts, r.Stopped)
			}
			s.Stop() // no effect after the end
		})
	}
}

func TestSessionErrors(t *testing.T) {
	t.Parallel()
	w := workload(t, "a", ycsb.Properties{"recordcount": "10"})
	t.Run("spec", func(t *testing.T) {
		if _, err := StartAgent(context.Background(), testhost.Loopback(t, 1)[0], os.Args[0], AgentSpec{}); !errors.Is(err, errSpec) {
			t.Error(err)
		}
	})
	t.Run("program", func(t *testing.T) {
		_, err := StartAgent(context.Background(), testhost.Loopback(t, 1)[0], "/nowhere/skerry", AgentSpec{Spec: Spec{Workload: w}})
		if !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("database", func(t *testing.T) {
		s := start(t, context.Background(), AgentSpec{Database: "oracle", Spec: Spec{Workload: w}})
		collect(s)
		if _, err := s.Wait(); err == nil || !strings.Contains(err.Error(), `unknown database "oracle"`) {
			t.Error(err)
		}
	})
	t.Run("incomplete", func(t *testing.T) {
		s := start(t, context.Background(), AgentSpec{Database: "memory", Properties: map[string]string{"behave": "readonly"},
			Spec: Spec{Phase: PhaseLoad, Workload: w}})
		collect(s)
		r, err := s.Wait()
		if !errors.Is(err, ErrIncomplete) || r.Unacknowledged != 10 || len(r.UnacknowledgedKeys) != 10 {
			t.Errorf("%v, %d missing", err, r.Unacknowledged)
		}
	})
	t.Run("crash", func(t *testing.T) {
		s := start(t, context.Background(), AgentSpec{Database: "memory", Properties: map[string]string{"behave": "crash"},
			Spec: Spec{Workload: w}})
		collect(s)
		if _, err := s.Wait(); !errors.Is(err, errAgent) || !strings.Contains(err.Error(), "out of memory") {
			t.Error(err)
		}
	})
	t.Run("killed", func(t *testing.T) {
		s := start(t, context.Background(), AgentSpec{Database: "memory", Spec: Spec{Workload: w, Target: 1000, Duration: time.Hour}})
		<-s.Intervals()
		if err := s.process.Kill(); err != nil {
			t.Fatal(err)
		}
		collect(s)
		if _, err := s.Wait(); !errors.Is(err, errAgent) {
			t.Error(err)
		}
	})
}

// A killed parent sends no command, but the agent's stdin ends.
func TestAgentEndsWithParent(t *testing.T) {
	t.Parallel()
	spec, err := json.Marshal(AgentSpec{Database: "memory", Spec: Spec{Workload: workload(t, "c", nil), Target: 100, Duration: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	in, parent := io.Pipe()
	var out bytes.Buffer
	done := make(chan error)
	go func() { done <- ServeAgent(context.Background(), in, &out, openMemory) }()
	if _, err := parent.Write(append(spec, '\n')); err != nil {
		t.Fatal(err)
	}
	parent.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), `"stopped":"stopped"`) {
		t.Errorf("last output of the driver: %s", out.String())
	}
}

// The agent also ends when its output is no longer read.
func TestAgentEndsWithReader(t *testing.T) {
	t.Parallel()
	spec, err := json.Marshal(AgentSpec{Database: "memory", Spec: Spec{Workload: workload(t, "c", nil), Target: 100, Duration: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	in, parent := io.Pipe()
	defer parent.Close()
	reader, out := io.Pipe()
	reader.Close()
	done := make(chan error)
	go func() { done <- ServeAgent(context.Background(), in, out, openMemory) }()
	if _, err := parent.Write(append(spec, '\n')); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}
