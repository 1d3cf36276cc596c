package transport

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/machine/inventory"
	"skerry/test/machinetest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// sites counts the sites of this process.
var sites atomic.Int32

func options(t testing.TB) Options {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Exe: exe, Log: slog.New(slog.DiscardHandler)}
}

// here is this machine, reached by a command, with the state of its labs in a directory.
func here(t testing.TB, dir string) inventory.Entry {
	t.Helper()
	return inventory.Entry{Name: "here", Command: []string{
		"env", "SKERRY_STATE=" + filepath.Join(dir, "state"), "SKERRY_DATA=" + filepath.Join(dir, "data"), options(t).Exe, "agent", "machine",
	}}
}

// reach connects to a machine until the end of the test.
func reach(t testing.TB, m inventory.Entry) *Connection {
	t.Helper()
	c, err := Open(t.Context(), m, options(t))
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

// A machine behind a transport, with its agent as a separate process, passes the contract test.
func TestContract(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	machinetest.Run(t, func(t *testing.T) machinetest.Site {
		dir := t.TempDir()
		name := fmt.Sprintf("carried-%d-%d", os.Getpid(), sites.Add(1))
		kill := func(t *testing.T, pid int) {
			t.Helper()
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		return machinetest.Site{
			Lab: name, Machine: reach(t, here(t, dir)), Other: reach(t, here(t, dir)),
			Left: func(t *testing.T) {
				t.Helper()
				testhost.CheckLeftovers(t, name, dir)
			},
			Kill: kill,
			Die:  dying(here(t, dir), kill),
		}
	})
}

// dying lets an agent bring up a part, with a process on each node after a step, and kills it.
func dying(m inventory.Entry, kill func(t *testing.T, pid int)) func(t *testing.T, a machine.PartSpec, after machinetest.Step) {
	return func(t *testing.T, a machine.PartSpec, after machinetest.Step) {
		t.Helper()
		c, err := Open(t.Context(), m, options(t))
		if err != nil {
			t.Fatal(err)
		}
		dead := false
		die := func() {
			if !dead {
				kill(t, c.Hello.PID)
				<-c.process.Done()
				dead = true
			}
		}
		p, err := machinetest.Bring(t.Context(), c, a, func(s machinetest.Step) {
			if s == after && s != machinetest.Kept {
				die()
			}
		})
		if after == machinetest.Kept {
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []string{"a", "b"} {
				h, err := p.Host(n)
				if err != nil {
					t.Fatal(err)
				}
				// The child clears its environment, as redis-server does with its title.
				if _, err := h.Start(t.Context(), host.Command{Name: "sleep", Path: "/usr/bin/env", Args: []string{"-i", "/bin/sleep", "1000"}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		die()
		if err := c.Close(); err == nil {
			t.Error("closing a killed agent returned no error")
		}
	}
}
