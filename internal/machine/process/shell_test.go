package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRunShell(t *testing.T) {
	dir := t.TempDir()
	out, err := RunShell(t.Context(), ShellCommand{Name: "list", Text: "echo shown >&2; pwd; echo $OF", Dir: dir, Env: []string{"OF=me"}})
	if err != nil || out != dir+"\nme" {
		t.Errorf("%q, %v", out, err)
	}
	_, err = RunShell(t.Context(), ShellCommand{Name: "up", Text: "echo no such namespace >&2; exit 3"})
	if err == nil || err.Error() != "command up: exit status 3: no such namespace" {
		t.Errorf("%v", err)
	}
}

func TestShellTimeout(t *testing.T) {
	_, err := RunShell(t.Context(), ShellCommand{Name: "ready", Text: "sleep 600", Timeout: 50 * time.Millisecond})
	if !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
}

// A child of the command is killed with it.
func TestShellGroupIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	var text []byte
	go func() {
		defer cancel()
		for t.Context().Err() == nil && !strings.HasSuffix(string(text), "\n") {
			time.Sleep(10 * time.Millisecond)
			text, _ = os.ReadFile(file) // missing until the child runs
		}
	}()
	_, err := RunShell(ctx, ShellCommand{Name: "ready", Text: "sleep 600 & echo $! >" + file + "; wait"})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-ctx.Done()
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for ended := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil && !zombie(pid); {
		if time.Now().After(ended) {
			t.Fatalf("process %d is still running", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// zombie reports whether a process has ended and was not reaped, which its new parent may never do.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestRunShellUntil(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tries")
	c := ShellCommand{Name: "ready", Text: "echo x >>" + file + "; test $(wc -l <" + file + ") -ge 3", Timeout: time.Minute}
	if _, err := RunShellUntil(t.Context(), c); err != nil {
		t.Error(err)
	}
	c = ShellCommand{Name: "ready", Text: "echo not yet; false", Timeout: 500 * time.Millisecond}
	if _, err := RunShellUntil(t.Context(), c); err == nil || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RunShellUntil(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestExecuteShellResult(t *testing.T) {
	for text, want := range map[string]ShellResult{
		`echo out`:             {Stdout: "out", Output: "out"},
		`echo err >&2`:         {Output: "err"},
		`echo why >&2; exit 3`: {Output: "why", Exit: 3},
		`kill -9 $$`:           {Exit: -1},
	} {
		r, err := ExecuteShell(t.Context(), ShellCommand{Name: "do", Text: text, Timeout: time.Minute})
		if r != want || (err == nil) != (want.Exit == 0) {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
}
