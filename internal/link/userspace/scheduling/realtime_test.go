package scheduling

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/testkit"
)

// What looks again and again whether another thread has done something lets that one run, where both
// have one processor.
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
		t.Errorf("what only looks kept the other from its processor: %v", err)
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
