package realtime

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/test/testkit"
)

func TestRaiseAndRestore(t *testing.T) {
	testkit.Need(t, testkit.Root)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	policy := func() uint32 {
		a, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a.Policy
	}
	p := Current()
	p.Raise()
	if got := policy(); got == unix.SCHED_NORMAL {
		testkit.Lacks(t, testkit.RealTime, errors.New("the policy stayed SCHED_OTHER"))
	} else if got != unix.SCHED_RR {
		t.Errorf("policy %d, want %d", got, unix.SCHED_RR)
	}
	p.Restore()
	if got := policy(); got != p.ordinary.Policy {
		t.Errorf("policy %d afterwards, want %d", got, p.ordinary.Policy)
	}
}

func TestNilProcessKeepsPriority(t *testing.T) {
	var p *Process
	p.Raise() // neither call panics
	p.Restore()
}

// Threads that the runtime starts later have the priority, too. It is permanent, so a separate process is used.
func TestRaisePermanently(t *testing.T) {
	testkit.Need(t, testkit.Root)
	const child = "SKERRY_TEST_FOREVER"
	if os.Getenv(child) == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, "-test.run=^TestRaisePermanently$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	RaisePermanently()
	policies := make(chan uint32)
	for range 20 { // more than the current number of threads
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			a, err := unix.SchedGetAttr(0, 0)
			if err != nil {
				t.Error(err)
				a = new(unix.SchedAttr)
			}
			policies <- a.Policy
		}()
	}
	for range 20 {
		if got := <-policies; got == unix.SCHED_NORMAL {
			testkit.Lacks(t, testkit.RealTime, errors.New("the policy stayed SCHED_OTHER"))
		} else if got != unix.SCHED_RR {
			t.Errorf("policy %d of a thread, want %d", got, unix.SCHED_RR)
		}
	}
}

// A thread that polls for another one lets that one run if both share a CPU.
func TestThreadsTakeTurns(t *testing.T) {
	testkit.Need(t, testkit.Root)
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if allowed.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	done := filepath.Join(t.TempDir(), "done")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	start := func(script string) (c *exec.Cmd, in io.WriteCloser, out *bufio.Reader) {
		c = exec.CommandContext(ctx, "sh", "-c", script, "sh", done)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		said, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(unix.SchedSetaffinity(c.Process.Pid, &one), SetThread(c.Process.Pid, EmulatorPriority))
		if err == nil {
			return c, in, bufio.NewReader(said)
		}
		cancel()
		if ended := c.Wait(); !errors.Is(err, unix.EPERM) {
			t.Fatal(errors.Join(err, ended))
		}
		testkit.Lacks(t, testkit.RealTime, err)
		return nil, nil, nil
	}
	does, begin, _ := start(`read go; : > "$1"`)
	looks, look, looking := start(`read go; echo; until [ -e "$1" ]; do :; done`)
	for _, step := range []func() error{
		func() error { _, err := io.WriteString(look, "go\n"); return err },
		func() error { _, err := looking.ReadString('\n'); return err },
		func() error { _, err := io.WriteString(begin, "go\n"); return err },
	} {
		if err := step(); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(does.Wait(), looks.Wait()); err != nil {
		t.Errorf("the polling thread kept the other thread from the CPU: %v", err)
	}
}

func TestChildGroup(t *testing.T) {
	tests := []struct {
		name, groups, want string
	}{
		{"root", "3:cpuset:/x\n1:cpu:/\n0::/\n", ""},
		{"child", "3:cpuset:/\n1:cpu:/lab/node\n0::/\n", "cpu"},
		{"controllers together", "4:cpu,cpuacct:/user.slice\n", "cpu,cpuacct"},
		{"version 2", "0::/user.slice/session-1.scope\n", ""},
		{"other names", "5:cpuset,cpuacct:/x\n", ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := childGroup(tt.groups)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("childGroup = %q, %v; want %q", got, ok, tt.want)
			}
		})
	}
}
