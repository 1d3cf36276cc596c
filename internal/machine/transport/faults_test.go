package transport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/procfs"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/remote"
	"skerry/test/machinetest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// ssh replaces the real one in PATH: it runs the command here, like a login shell that prints a message. The tests on
// simulated machines use the real one.
const ssh = `#!/bin/sh
while [ $# -gt 1 ]; do shift; done
echo "Welcome to this machine"
exec /bin/sh -c "$1"
`

// shelled is this machine, reached through a shell that receives the program.
func shelled(t *testing.T) (m inventory.Entry, cache string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(ssh), 0o700); err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(dir, "cache")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("SKERRY_CACHE", cache)
	t.Setenv("SKERRY_STATE", filepath.Join(dir, "state"))
	t.Setenv("SKERRY_DATA", filepath.Join(dir, "data"))
	return inventory.Entry{Name: "rack-1", SSH: &inventory.SSH{Host: "rack"}}, cache
}

// programs lists the programs copied to a machine.
func programs(t *testing.T, cache string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cache, "agent", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The program is copied to a machine once, if it is missing or different.
func TestProgramIsCopiedOnce(t *testing.T) {
	m, cache := shelled(t)
	var first os.FileInfo
	for i, want := range []string{"given", "kept", "mended"} {
		if c := reach(t, m); c.Hello.PID == 0 || c.Hello.Cores == 0 {
			t.Errorf("got %+v from the agent", c.Hello)
		}
		all := programs(t, cache)
		if len(all) != 1 {
			t.Fatalf("%s: got programs %v", want, all)
		}
		now, err := os.Stat(all[0])
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && os.SameFile(first, now) != (want == "kept") {
			t.Errorf("the program was not %s", want)
		}
		if first = now; want == "kept" {
			if err := os.Rename(all[0], all[0]+".old"); err != nil { // a running program cannot be overwritten
				t.Fatal(err)
			}
			if err := os.WriteFile(all[0], []byte("half of the program"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(all[0] + ".old"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestUnreachableMachinesAreReported(t *testing.T) {
	said := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	for name, c := range map[string]struct {
		argv []string
		is   error
		want string
	}{
		"no such command":       {[]string{"/nowhere/carrier"}, ErrUnreachable, "no such file"},
		"failing shell":         {said("echo Permission denied >&2; exit 255"), ErrUnreachable, "Permission denied"},
		"no output":             {said("exit 0"), ErrUnreachable, "no output from"},
		"too much output":       {said("yes"), ErrUnreachable, "no line begins"},
		"an older agent":        {said("echo skerry agent machine 0; cat >/dev/null"), ErrProgramMismatch, "protocol 0"},
		"a breaking connection": {said("echo skerry agent machine 2; echo cable pulled >&2"), remote.ErrLost, "cable pulled"},
	} {
		_, err := Open(t.Context(), inventory.Entry{Name: "far", Command: c.argv}, options(t))
		if !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), "far: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.is, c.want)
		}
	}
}

// A machine that does not answer is abandoned when no caller waits for it, and nothing of the transport remains here.
func TestSilentMachineIsAbandoned(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := filepath.Join(t.TempDir(), "child")
	gone := make(chan error)
	go func() {
		carrier := []string{"/bin/sh", "-c", `sleep 1000 & echo $! >"$0.new"; mv "$0.new" "$0"; wait`, file}
		_, err := Open(ctx, inventory.Entry{Name: "far", Command: carrier}, options(t))
		gone <- err
	}()
	var text []byte
	until(t, "the transport has started its program", func() (err error) { text, err = os.ReadFile(file); return err })
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	until(t, "the program exits", func() error {
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if p, e := procfs.FindProcess(pid); err == nil && e == nil && p.Alive() {
			err = fmt.Errorf("kill %d", pid)
		}
		return err
	})
}

// until waits for a condition.
func until(t *testing.T, what string, happened func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := happened()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute: %v", what, err)
		}
	}
}

// A machine with another program receives no requests, and one of another architecture needs its own program.
func TestDifferentProgramIsRejected(t *testing.T) {
	o := options(t)
	other := filepath.Join(t.TempDir(), "skerry")
	if err := os.WriteFile(other, []byte("another"), 0o700); err != nil {
		t.Fatal(err)
	}
	m := here(t, t.TempDir())
	o.Exe = other
	if _, err := Open(t.Context(), m, o); !errors.Is(err, ErrProgramMismatch) || !strings.HasPrefix(err.Error(), "here: ") || advice.Of(err) == "" {
		t.Errorf("%v", err)
	}
	if _, err := findProgram(other, "linux", "riscv64"); !errors.Is(err, ErrNoProgram) || !strings.Contains(advice.Of(err), "GOARCH=riscv64") {
		t.Errorf("%v (%s)", err, advice.Of(err))
	}
}

// When a transport breaks, requests fail with the machine's name, the agent exits, and nothing remains. After an agent
// is killed, the next one cleans up.
func TestFaultsLeaveNothing(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	for name, fault := range map[string]struct {
		do   func(c *Connection) error
		next bool // the next agent cleans up
	}{
		"a broken transport": {func(c *Connection) error { return c.process.conn.Close() }, false},
		"a killed agent":     {func(c *Connection) error { return unix.Kill(c.Hello.PID, unix.SIGKILL) }, true},
		"a terminated agent": {func(c *Connection) error { return unix.Kill(c.Hello.PID, unix.SIGTERM) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			lab := fmt.Sprintf("faults-%d-%d", os.Getpid(), sites.Add(1))
			c, err := Open(t.Context(), here(t, dir), options(t))
			if err != nil {
				t.Fatal(err)
			}
			p, err := machinetest.Bring(t.Context(), c, machine.PartSpec{Lab: lab, Owned: true}, func(machinetest.Step) {})
			if err != nil {
				t.Fatal(err)
			}
			h, err := p.Host("a")
			if err != nil {
				t.Fatal(err)
			}
			runs, err := h.Start(t.Context(), host.Command{Name: "sleep", Path: "/bin/sleep", Args: []string{"1000"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := fault.do(c); err != nil {
				t.Fatal(err)
			}
			<-runs.Done()
			if err := runs.Err(); !errors.Is(err, remote.ErrLost) || !strings.HasPrefix(err.Error(), "here: ") {
				t.Errorf("the process exited with %v", err)
			}
			if _, err := p.LinkStats(t.Context()); !errors.Is(err, remote.ErrLost) || !strings.HasPrefix(err.Error(), "here: ") {
				t.Errorf("a request afterwards: %v", err)
			}
			<-c.process.Done()
			if err := c.Close(); (err != nil) != fault.next {
				t.Errorf("closing: %v", err)
			}
			if fault.next {
				reach(t, here(t, dir))
			}
			testhost.CheckLeftovers(t, lab, dir)
		})
	}
}

// A clock offset is returned with its maximum error.
func TestClock(t *testing.T) {
	c := reach(t, here(t, t.TempDir()))
	got, err := c.Clock(t.Context())
	if err != nil || got.Uncertainty <= 0 || got.Offset.Abs() > got.Uncertainty {
		t.Errorf("this machine's own clock: %+v, %v", got, err)
	}
	// The clock changes while the agent runs.
	testkit.AttachClock(t, c.Hello.PID).Set(t, time.Hour)
	got, err = c.Clock(t.Context())
	if err != nil || (got.Offset-time.Hour).Abs() > got.Uncertainty+time.Millisecond {
		t.Errorf("a clock an hour ahead: %+v, %v", got, err)
	}
}
