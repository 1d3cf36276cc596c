package dbtest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/machine/host"
)

// hostRecorder is a node that records its processes and can run another program instead.
type hostRecorder struct {
	host.Host

	mu        sync.Mutex
	processes []host.Process
	// instead, if set, is a shell script that runs instead of every program.
	instead string
	// started, if set, is called with each process.
	started func(host.Process)
}

func (s *suite) newHosts(t *testing.T) []*hostRecorder {
	t.Helper()
	var recorders []*hostRecorder
	for _, h := range s.Hosts(t, s.Nodes+s.Spare+1) {
		recorders = append(recorders, &hostRecorder{Host: h})
	}
	return recorders
}

func (h *hostRecorder) Start(ctx context.Context, c host.Command) (host.Process, error) {
	h.mu.Lock()
	instead, started := h.instead, h.started
	h.mu.Unlock()
	if instead != "" {
		c.Path, c.Args = "/bin/sh", []string{"-c", instead}
	}
	p, err := h.Host.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.processes = append(h.processes, p)
	h.mu.Unlock()
	if started != nil {
		started(p)
	}
	return p, nil
}

func (h *hostRecorder) running() []host.Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	var left []host.Process
	for _, p := range h.processes {
		select {
		case <-p.Done():
		default:
			left = append(left, p)
		}
	}
	return left
}

// override sets the script that replaces programs, and the callback for started processes.
func (h *hostRecorder) override(instead string, started func(host.Process)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.instead, h.started = instead, started
}

const endTimeout = 3 * time.Second

// checkNothingLeft fails the test if a process of the cluster, or a descendant, still runs.
func (s *suite) checkNothingLeft(t *testing.T) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		left := s.describeLeft(t)
		if len(left) == 0 {
			return
		}
		if time.Since(began) > endTimeout {
			t.Errorf("processes are still running:\n%s", strings.Join(left, "\n"))
			return
		}
	}
}

func (s *suite) describeLeft(t *testing.T) (found []string) {
	t.Helper()
	for _, h := range s.hosts {
		for _, p := range h.running() {
			found = append(found, fmt.Sprintf("%d, started on %s: %s", p.PID(), h.Name(), commandLine(fmt.Sprint(p.PID()))))
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range processes {
		pid := filepath.Base(dir)
		line := commandLine(pid)
		cwd, err := os.Readlink(filepath.Join(dir, "cwd"))
		if err != nil {
			continue // the process has ended
		}
		for _, h := range s.hosts {
			if cwd == h.Dir() || strings.HasPrefix(cwd, h.Dir()+"/") || strings.Contains(line, h.Dir()+"/") {
				found = append(found, fmt.Sprintf("%s, of %s: %s", pid, h.Name(), line))
			}
		}
	}
	return found
}

func commandLine(pid string) string {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ")
}

// Start starts a cluster of the installed database and stops it with the test. The first node is Control.
func Start(t testing.TB, d database.Database, env database.Env) database.Cluster {
	t.Helper()
	c, err := TryStart(t, d, env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TryStart is Start for a start that may fail. The caller stops the cluster.
func TryStart(t testing.TB, d database.Database, env database.Env) (database.Cluster, error) {
	t.Helper()
	in, err := d.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	env.Installation = in
	if env.Control == nil {
		env.Control = env.Nodes[0]
	}
	if env.Log == nil {
		env.Log = slog.New(slog.DiscardHandler)
	}
	if env.Progress == nil {
		env.Progress = func(string) {}
	}
	return d.Start(t.Context(), env)
}

// Open opens a client and closes it with the test. More contains further properties as names and values.
func Open(t testing.TB, d database.Database, properties map[string]string, more ...string) load.Client {
	t.Helper()
	p := maps.Clone(properties)
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	c, err := d.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// CPU benchmarks an operation and reports this process's CPU time: the client's cost without the server.
func CPU(b *testing.B, op func(ctx context.Context) error) {
	b.Helper()
	before := cpuTime(b)
	for b.Loop() {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		if err := op(ctx); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) int64 {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return r.Utime.Nano() + r.Stime.Nano()
}
