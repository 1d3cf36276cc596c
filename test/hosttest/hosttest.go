// Package hosttest is the contract of host.Host. It uses only the interface.
package hosttest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
)

// Run tests a host, whose directory other users may enter.
func Run(t *testing.T, h host.Host) {
	for name, part := range map[string]func(t *testing.T, h host.Host){
		"dial":          testDial,
		"last words":    testLastWords,
		"names":         testNames,
		"waiting dial":  testPatience,
		"whole files":   testWhole,
		"missing files": testMissing,
		"folders":       testFolders,
		"owners":        testOwners,
		"large files":   testLarge,
		"growing files": testGrowing,
		"space":         testSpace,
		"late files":    testTooLate,
		"life":          testLife,
		"families":      testFamily,
		"logs":          testLog,
		"users":         testUser,
	} {
		t.Run(name, func(t *testing.T) { part(t, h) })
	}
}

// folder makes a directory on the node for the duration of the test.
func folder(t *testing.T, h host.Host) string {
	t.Helper()
	dir := filepath.Join(h.Dir(), "contract")
	if err := files.Empty(t.Context(), h.Files(), dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Files().Remove(context.WithoutCancel(t.Context()), dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func script(text string) host.Command {
	return host.Command{Name: "script", Path: "/bin/sh", Args: []string{"-c", text}}
}

// start runs a program until the test ends.
func start(t *testing.T, h host.Host, c host.Command) host.Process {
	t.Helper()
	p, err := h.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.KillFamily(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// output runs a program and returns its output.
func output(t *testing.T, h host.Host, c host.Command) string {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	p := start(t, h, c)
	<-p.Done()
	if err := p.Err(); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	return strings.TrimSpace(out.String())
}

// startAndRead starts a program and returns its first line of output.
func startAndRead(t *testing.T, h host.Host, c host.Command) (host.Process, string) {
	t.Helper()
	out, in := io.Pipe()
	var watcher sync.WaitGroup
	t.Cleanup(watcher.Wait)
	c.Stdout = in
	p := start(t, h, c)
	watcher.Go(func() {
		<-p.Done()
		in.Close() // it may have printed nothing
	})
	t.Cleanup(func() { out.Close() }) // the rest is not read
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("output %q, then exit: %v", line, p.Err())
	}
	return p, strings.TrimSpace(line)
}

// patience is a generous timeout.
const patience = time.Minute

// A process runs in the node's directory. Each way of ending it works.
func testLife(t *testing.T, h host.Host) {
	if got := output(t, h, script("cat; pwd")); got != h.Dir() {
		t.Errorf("working directory %s, want %s", got, h.Dir())
	}
	echo := script("cat")
	echo.Stdin = strings.NewReader("stdin")
	if got := output(t, h, echo); got != "stdin" {
		t.Errorf("got %q on stdin", got)
	}
	for name, c := range map[string]struct {
		script string
		end    func(p host.Process) error
		want   string
	}{
		"on its own":  {"echo; exit 3", func(host.Process) error { return nil }, "exit status 3"},
		"stop":        {`trap "exit 4" TERM; echo; while :; do sleep 0.02; done`, func(p host.Process) error { return p.Stop(t.Context(), patience) }, "exit status 4"},
		"stop, deaf":  {`trap "" TERM; echo; while :; do sleep 0.02; done`, func(p host.Process) error { return p.Stop(t.Context(), time.Millisecond) }, "signal: killed"},
		"kill":        {"echo; exec sleep 1000", host.Process.Kill, "signal: killed"},
		"kill family": {"echo; exec sleep 1000", host.Process.KillFamily, "signal: killed"},
		"signal":      {`trap "exit 5" INT; echo; while :; do sleep 0.02; done`, func(p host.Process) error { return p.Signal(syscall.SIGINT) }, "exit status 5"},
	} {
		p, _ := startAndRead(t, h, script(c.script))
		if err := c.end(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		<-p.Done()
		if err := p.Err(); err == nil || !strings.HasSuffix(err.Error(), c.want) || !strings.Contains(err.Error(), h.Name()) {
			t.Errorf("%s: exited with %v, want %s on %s", name, err, c.want, h.Name())
		}
		for again, end := range map[string]func() error{"Kill": p.Kill, "KillFamily": p.KillFamily, "Signal": func() error { return p.Signal(syscall.SIGTERM) }} {
			if err := end(); err != nil {
				t.Errorf("%s, then %s: %v", name, again, err)
			}
		}
	}
	if _, err := h.Start(t.Context(), host.Command{Name: "nothing", Path: "/nowhere/nothing"}); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("starting a missing program: %v", err)
	}
}

// KillFamily also ends children in other sessions.
func testFamily(t *testing.T, h host.Host) {
	p, child := startAndRead(t, h, script(`setsid sleep 1000 & echo $!; wait`))
	// The child becomes a session leader only after its fork: wait until it executes sleep.
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		name, err := files.Read(t.Context(), h.Files(), filepath.Join("/proc", child, "comm"))
		if err != nil {
			t.Fatal(err)
		}
		if name == "sleep\n" {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("state of the process: %s", name)
		}
	}
	if err := p.KillFamily(); err != nil {
		t.Fatal(err)
	}
	stat, err := files.Read(t.Context(), h.Files(), filepath.Join("/proc", child, "stat"))
	if err == nil && !strings.Contains(stat, ") Z") && !strings.Contains(stat, ") X") {
		t.Errorf("its child is still running: %s", stat)
	}
}

// Output is appended to the log, and Tail returns its end.
func testLog(t *testing.T, h host.Host) {
	c := script("echo one; echo two >&2; echo three")
	c.Log = filepath.Join(folder(t, h), "log")
	for range 2 {
		p := start(t, h, c)
		<-p.Done()
		if got := p.Tail(2); got != "two\nthree" {
			t.Errorf("last lines of the log: %q", got)
		}
	}
	if got, err := files.Read(t.Context(), h.Files(), c.Log); err != nil || got != strings.Repeat("one\ntwo\nthree\n", 2) {
		t.Errorf("contents of the log: %q, %v", got, err)
	}
	if got := start(t, h, script("echo")).Tail(2); got != "" {
		t.Errorf("last lines without a log: %q", got)
	}
}

// A program with a UID does not run as root.
func testUser(t *testing.T, h host.Host) {
	c := script("id -u")
	c.UID, c.GID = nobody, nobody
	if got := output(t, h, c); got == "0" {
		t.Error("the program runs as root")
	}
}
