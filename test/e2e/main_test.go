// Package e2e runs the skerry program like a user: real namespaces, a real Redis Cluster, and every way in which a
// command can end. Each test leaves the machine unchanged.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry/internal/database/redis"
	"skerry/test/testkit"
)

// patience bounds every wait for a condition, and the time for which a command may print nothing. It is long, because
// the machine may be busy, and never reached in a successful test.
const patience = 90 * time.Second

// binary builds the programs once for all tests, as make build does, and returns the path of skerry.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "skerry-e2e-")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "skerry"), testkit.BuildPrograms(dir, "skerry", "hydra", "metad")
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// bench is the environment of one test: state, data, and a folder of files.
type bench struct {
	t   *testing.T
	dir string
	exe string
}

// newBench lets the test run in parallel with others, each with its own labs: tests mostly wait.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	return benchAlone(t)
}

// benchAlone is for tests that need or saturate the whole machine.
func benchAlone(t *testing.T) *bench {
	t.Helper()
	testkit.Need(t, testkit.Root, testkit.TUN, testkit.Installed(redis.Recipe))
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: t.TempDir(), exe: exe}
	t.Cleanup(b.checkClean)
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, text string) string {
	b.t.Helper()
	if err := os.WriteFile(b.path(name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return b.path(name)
}

// command runs skerry with its state in the bench's folder.
func (b *bench) command(args ...string) *running { return b.program("skerry", args...) }

// program runs one of the programs, with its state in the bench's folder.
func (b *bench) program(name string, args ...string) *running {
	cmd := exec.Command(filepath.Join(filepath.Dir(b.exe), name), args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "SKERRY_STATE="+b.path("state"), "SKERRY_DATA="+b.path("data"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r := &running{t: b.t, exe: b.exe, cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &r.stdout, &r.stderr
	return r
}

// running is a running skerry.
type running struct {
	t              *testing.T
	exe            string // skerry
	cmd            *exec.Cmd
	stdout, stderr buffer
	done           chan struct{}
}

func (r *running) start() *running {
	r.t.Helper()
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait() // ProcessState has the result
	}()
	r.t.Cleanup(func() {
		select {
		case <-r.done:
			return
		default:
		}
		_ = r.cmd.Process.Kill()
		<-r.done
		r.clear()
	})
	return r
}

// clear removes the leftovers of a command that the end of the test killed.
func (r *running) clear() {
	sweep := exec.Command(r.exe, "lab", "sweep")
	sweep.Dir, sweep.Env = r.cmd.Dir, r.cmd.Env
	(&running{t: r.t, cmd: sweep}).run()
}

// run runs a command of the clean-up, which the end of the test does not stop. A failure is an error of the test.
func (r *running) run() {
	r.t.Helper()
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Run(); err != nil {
		r.t.Errorf("skerry %v: %v: %s%s", r.cmd.Args[1:], err, r.stdout.String(), r.stderr.String())
	}
}

func (r *running) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// wait returns the exit code, -1 for a signal. A command that reports progress may take any time; a silent one hangs.
func (r *running) wait() int {
	r.t.Helper()
	for printed := -1; ; {
		select {
		case <-r.done:
			return r.cmd.ProcessState.ExitCode()
		case <-time.After(patience):
		}
		now := r.stdout.Len() + r.stderr.Len()
		if now == printed {
			r.t.Fatalf("skerry %v printed nothing for %s and did not exit\nstderr:\n%s", r.cmd.Args[1:], patience, r.stderr.String())
		}
		printed = now
	}
}

// run runs a command to its end and fails the test unless it has the expected exit code.
func (b *bench) run(want int, args ...string) *running {
	b.t.Helper()
	r := b.command(args...).start()
	if got := r.wait(); got != want {
		b.t.Fatalf("skerry %v: exit %d, want %d\nstdout:\n%s\nstderr:\n%s", args, got, want, r.stdout.String(), r.stderr.String())
	}
	return r
}

// await polls until cond holds.
func (b *bench) await(what string, cond func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			b.t.Fatalf("timeout waiting for %s", what)
		case <-tick.C:
		}
	}
}

// buffer is a bytes.Buffer that may be read while a process writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Len()
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// contains fails the test unless text holds every part.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("missing %q in:\n%s", p, text)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// A test that ends during its run leaves nothing on the machine, as checkClean verifies.
func TestEndedTestsLeaveNothing(t *testing.T) {
	b := newBench(t)
	b.command("run", b.write("small.yaml", sided)).start()
	b.measuring(b.path("runs/latest"))
}
