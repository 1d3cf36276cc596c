package host_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"skerry/internal/machine/host"
	"skerry/test/hosttest"
)

const loopbackPatience = 30 * time.Second

func newLoopback(t *testing.T) host.Host {
	t.Helper()
	h, err := host.NewLoopback("n1", "s1", "127.3.2.1", filepath.Join(t.TempDir(), "n1"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// start runs a script and returns its first line after it was printed.
func start(t *testing.T, h host.Host, script string) (host.Process, string) {
	t.Helper()
	out, in := io.Pipe()
	p, err := h.Start(t.Context(), host.Command{
		Name: "demo", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"GREETING=hello"}, Stdout: in, Log: filepath.Join(h.Dir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		out.Close()
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return p, strings.TrimSpace(line)
}

func TestStart(t *testing.T) {
	h := newLoopback(t)
	p, line := start(t, h, `echo "$GREETING from $PWD, at home in $HOME, ${USER:-nobody}"; echo one >&2; echo two >&2; echo three >&2; exit 3`)
	if want := "hello from " + h.Dir() + ", at home in " + h.Dir() + ", nobody"; line != want {
		t.Errorf("got output %q, want %q", line, want)
	}
	<-p.Done()
	if err := p.Err(); err == nil || err.Error() != "demo on n1: exit status 3" || p.Tail(2) != "two\nthree" {
		t.Errorf("error %v, last lines %q", err, p.Tail(2))
	}
	if err := p.Stop(t.Context(), loopbackPatience); err != nil {
		t.Errorf("stopping an ended process: %v", err)
	}
	l, err := net.Listen("tcp", h.Addr()+":0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := h.Start(t.Context(), host.Command{Name: "demo", Path: "/nowhere/demo"}); err == nil || !strings.Contains(err.Error(), "demo") {
		t.Errorf("starting a missing program: %v", err)
	}
}

func TestStop(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	const deaf = `trap "" TERM; `
	for name, c := range map[string]struct {
		ctx    context.Context
		script string
		grace  time.Duration
		want   string
	}{
		"it may exit on its own": {t.Context(), `trap "exit 5" TERM; `, loopbackPatience, "demo on n1: exit status 5"},
		"SIGTERM ignored":        {t.Context(), deaf, time.Millisecond, "demo on n1: signal: killed"},
		"canceled":               {gone, deaf, time.Hour, "demo on n1: signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := start(t, newLoopback(t), c.script+`echo up; while :; do sleep 0.02; done`)
			if p.Err() != nil {
				t.Error(p.Err())
			}
			if err := p.Stop(c.ctx, c.grace); err != nil || p.Err() == nil || p.Err().Error() != c.want {
				t.Errorf("Stop() = %v, exit error %v", err, p.Err())
			}
		})
	}
}

// The end of a program is reported even if a child still holds its output.
func TestLeftover(t *testing.T) {
	p, child := start(t, newLoopback(t), `sleep 1000 & echo $!`)
	pid, err := strconv.Atoi(child)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	select {
	case <-p.Done():
	case <-time.After(loopbackPatience):
		t.Fatal("the process is reported as running")
	}
	if err := p.Err(); err != nil {
		t.Errorf("the process exited with %v", err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the child ended although it was not killed: %v", err)
	}
}

// The children of a program are killed with it.
func TestKill(t *testing.T) {
	p, child := start(t, newLoopback(t), `sleep 1000 >/dev/null 2>&1 & echo $!; exec sleep 1000`)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(loopbackPatience); ; time.Sleep(10 * time.Millisecond) {
		status, err := os.ReadFile("/proc/" + child + "/stat")
		if err != nil || strings.Contains(string(status), ") Z") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("its child is still running: %s", status)
		}
	}
}

func TestLoopbackContract(t *testing.T) {
	h := newLoopback(t)
	for dir := h.Dir(); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // users without rights run there
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hosttest.Run(t, h)
}
