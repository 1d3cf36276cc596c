package userspace_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"skerry/internal/base/advice"
	"skerry/internal/link"
	"skerry/internal/link/userspace"
	"skerry/test/testkit"
)

// joined is an emulator with one link between two namespaces.
type joined struct {
	*userspace.Engine
	a, b *testkit.NS
}

func join(t *testing.T, o userspace.Options) joined {
	t.Helper()
	testkit.Need(t, testkit.Root, testkit.TUN)
	j := joined{a: testkit.Namespace(t), b: testkit.Namespace(t)}
	j.Engine = start(t, o)
	if err := j.Create(t.Context(), []link.Spec{spec(j.a.Path(), j.b.Path())}); err != nil {
		t.Fatal(err)
	}
	return j
}

func spec(a, b string) link.Spec {
	return link.Spec{ID: "a~b", A: link.End{Netns: a, Device: "ab"}, B: link.End{Netns: b, Device: "ab"}}
}

// awaitRemoval waits until the link's devices are removed.
func awaitRemoval(t *testing.T, namespaces ...*testkit.NS) {
	t.Helper()
	await(t, "the removal of the devices", func() bool {
		for _, ns := range namespaces {
			if ns.HasDevice(t, "ab") {
				return false
			}
		}
		return true
	})
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

func TestDetachedEmulatorIsFoundAgain(t *testing.T) {
	o := options(t)
	o.ExitWithOwner = false
	j := join(t, o)
	pid := j.PID()
	if err := j.Detach(); err != nil {
		t.Fatal(err)
	}
	again, err := userspace.Connect(t.Context(), o.Socket)
	if err != nil {
		t.Fatal(err)
	}
	if again.PID() != pid {
		t.Errorf("found process %d, left %d", again.PID(), pid)
	}
	stats, err := again.Stats(t.Context())
	if err != nil || len(stats) != 1 || stats[0].ID != "a~b" {
		t.Errorf("Stats = %+v, %v; want the link", stats, err)
	}
	if ok, reason := again.RealTime(); ok == (reason != "") {
		t.Errorf("RealTime = %v, %q", ok, reason)
	}
	if err := again.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	awaitRemoval(t, j.a, j.b)
	if _, err := userspace.Connect(t.Context(), o.Socket); err == nil {
		t.Error("the emulator still answers")
	}
}

func TestKilledEmulatorIsReported(t *testing.T) {
	j := join(t, options(t))
	if err := syscall.Kill(j.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-j.Done()
	_, err := j.Stats(t.Context())
	if !errors.Is(err, userspace.ErrEnded) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Stats = %v, want ErrEnded with signal: killed", err)
	}
	if err := j.Set(t.Context(), []link.Change{{ID: "a~b"}}); !errors.Is(err, userspace.ErrEnded) {
		t.Errorf("Set = %v, want ErrEnded", err)
	}
	awaitRemoval(t, j.a, j.b)
	if err := j.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestTerminatedEmulatorCleansUp(t *testing.T) {
	o := options(t)
	j := join(t, o)
	if err := syscall.Kill(j.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-j.Done()
	awaitRemoval(t, j.a, j.b)
	await(t, "the removal of the socket", func() bool {
		_, err := os.Stat(o.Socket)
		return errors.Is(err, os.ErrNotExist)
	})
}

// A process starts an emulator and is killed.
func TestKilledOwnerEndsEmulator(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	a, b := testkit.Namespace(t), testkit.Namespace(t)
	o := options(t)
	owner := exec.Command(o.Command[0], "owner", o.Socket, a.Path(), b.Path())
	owner.Stderr = os.Stderr
	stdout, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(stdout).ReadString('\n')
	if said != "ready\n" {
		t.Errorf("output of the owner: %q, %v", said, err)
	}
	if !a.HasDevice(t, "ab") || !b.HasDevice(t, "ab") {
		t.Error("the owner created no link")
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := owner.Wait(); err == nil {
		t.Error("the owner exited before it was killed")
	}
	awaitRemoval(t, a, b)
}

// own is the owner's process: it holds an emulator until it is killed.
func own(args []string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	e, err := userspace.Start(context.Background(), userspace.Options{
		Command: []string{exe, "agent", "link"}, Socket: args[0], ExitWithOwner: true,
	})
	if err != nil {
		return err
	}
	if err := e.Create(context.Background(), []link.Spec{spec(args[1], args[2])}); err != nil {
		return err
	}
	fmt.Println("ready")
	<-e.Done()
	return errors.New("the emulator exited first")
}

func TestStartFails(t *testing.T) {
	testkit.Need(t, testkit.Root)
	tests := []struct {
		name  string
		spoil func(*userspace.Options)
		want  string
	}{
		{"no command", func(o *userspace.Options) { o.Command = nil }, "no command"},
		{"no such program", func(o *userspace.Options) { o.Command = []string{"/no/such/program"} }, "no such file"},
		{"program that ends", func(o *userspace.Options) {
			o.Command = []string{"/bin/sh", "-c", "read -r line; echo last words >&2"}
		}, "last words"},
		{"program with unexpected output", func(o *userspace.Options) {
			o.Command = []string{"/bin/sh", "-c", "read -r line; echo hello"}
		}, "hello"},
		{"long socket", func(o *userspace.Options) { o.Socket = "/" + strings.Repeat("x", 120) }, "107"},
		{"no directory", func(o *userspace.Options) { o.Socket = filepath.Join(filepath.Dir(o.Socket), "none", "s") }, "no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(t)
			tt.spoil(&o)
			e, err := userspace.Start(t.Context(), o)
			if err == nil {
				e.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Start = %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestStartCancelled(t *testing.T) {
	o := options(t)
	o.Command = []string{"/bin/sleep", "1000"}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := userspace.Start(ctx, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start = %v, want DeadlineExceeded", err)
	}
}

func TestTwoEmulatorsDoNotShareASocket(t *testing.T) {
	testkit.Need(t, testkit.Root)
	o := options(t)
	first := start(t, o)
	if e, err := userspace.Start(t.Context(), o); err == nil {
		e.Close()
		t.Error("a second emulator replaced the socket")
	}
	if _, err := first.Stats(t.Context()); err != nil {
		t.Errorf("the first emulator: %v", err)
	}
}

func TestGarbageEndsTheConnectionOnly(t *testing.T) {
	testkit.Need(t, testkit.Root)
	o := options(t)
	e := start(t, o)
	for name, garbage := range map[string]string{
		"no JSON":           "hello\n",
		"unknown operation": `{"id":1,"op":"dance"}` + "\n",
		"endless line":      strings.Repeat("x", 17<<20) + "\n",
	} {
		conn, err := net.Dial("unix", o.Socket)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn.Write([]byte(garbage)) // fails when the other side hangs up early
		}()
		line, err := bufio.NewReader(conn).ReadString('\n')
		if !strings.Contains(line, `"error"`) {
			t.Errorf("%s: answered %q, %v; want an error", name, line, err)
		}
		conn.Close()
	}
	if _, err := e.Stats(t.Context()); err != nil {
		t.Errorf("after garbage on other connections: %v", err)
	}
}

func TestSocketIsTheOwnersAlone(t *testing.T) {
	testkit.Need(t, testkit.Root)
	o := options(t)
	start(t, o)
	info, err := os.Stat(o.Socket)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		t.Errorf("the socket has mode %o", mode)
	}
}

func TestLatenessOfAllLinks(t *testing.T) {
	j := join(t, options(t))
	late, err := j.Lateness(t.Context(), true)
	if err != nil || !late.Known {
		t.Errorf("Lateness = %+v, %v; want Known", late, err)
	}
}

func TestMissingRightsAreExplained(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.Setpriv)
	o := options(t)
	// setpriv drops the capabilities that are missing without root.
	o.Command = append([]string{"setpriv", "--bounding-set=-all", "--inh-caps=-all"}, o.Command...)
	_, err := userspace.Start(t.Context(), o)
	if !errors.Is(err, userspace.ErrUnavailable) || advice.Of(err) == "" {
		t.Errorf("Start = %v, want ErrUnavailable with advice", err)
	}
}
