package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"skerry/internal/link/tunnel"
	"skerry/internal/link/userspace"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
	"skerry/internal/machine/local"
	"skerry/test/machinetest"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

// TestMain lets tests start this program as the emulator, and as an owner that is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := agent(ctx, os.Args[2])
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Under the race detector, every agent would sleep for a second before it exits.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func agent(ctx context.Context, name string) error {
	switch name {
	case "link":
		return userspace.Main(ctx, os.Stdin, os.Stdout, slog.New(slog.DiscardHandler))
	case "wireguard":
		return tunnel.Main(ctx, os.Stdin, os.Stdout, slog.New(slog.DiscardHandler))
	case "owner":
		return owner(ctx)
	}
	return fmt.Errorf("no agent %s", name)
}

// order is the task of an owner process.
type order struct {
	State, Data string
	Plain       bool
	Ask         machine.PartSpec
	After       machinetest.Step
}

// owner brings up a part, starts a process on each node as soon as there are nodes, and kills itself after a step.
func owner(ctx context.Context) error {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	m, err := two(o)
	if err != nil {
		return err
	}
	p, err := machinetest.Bring(ctx, m, o.Ask, func(s machinetest.Step) {
		if s == o.After && s != machinetest.Kept {
			die()
		}
	})
	if err != nil {
		return err
	}
	for _, n := range p.Facts().Nodes {
		h, err := p.Host(n.Name)
		if err != nil {
			return err
		}
		// The child clears its environment, as redis-server does with its title.
		if _, err := h.Start(ctx, host.Command{Name: "sleep", Path: "/usr/bin/env", Args: []string{"-i", "/bin/sleep", "1000"}}); err != nil {
			return err
		}
	}
	die()
	return nil
}

func die() {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

// sites counts the sites of this process.
var sites atomic.Int32

// Unencrypted packets are refused on public networks.
func TestPlainNeedsPrivateAddresses(t *testing.T) {
	for addr, private := range map[string]bool{"10.0.0.1": true, "192.168.3.4": true, "fd00::1": true, "127.0.0.1": true, "203.0.113.7": false, "2001:db8::1": false} {
		members := []Member{{Name: "a", Addr: netip.MustParseAddr("10.9.9.9")}, {Name: "b", Addr: netip.MustParseAddr(addr)}}
		f, err := New(members, map[string]string{"x": "a", "y": "b"})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.DisableEncryption(); (err == nil) != private {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// Full-size packets cross between machines without encryption, too, and nothing remains.
func TestPlain(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	dir, name := t.TempDir(), fmt.Sprintf("plain-%d", os.Getpid())
	f := here(t, order{State: filepath.Join(dir, "state"), Data: filepath.Join(dir, "data"), Plain: true})
	p, err := machinetest.Bring(t.Context(), f, machine.PartSpec{Lab: name, Owned: true}, func(machinetest.Step) {})
	if p != nil {
		err = errors.Join(err, p.Down(t.Context()))
	}
	if err != nil {
		t.Error(err)
	}
	testhost.CheckLeftovers(t, name, dir)
}

// A lab whose nodes are on two machines passes the contract test of one machine.
func TestContract(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN)
	machinetest.Run(t, func(t *testing.T) machinetest.Site {
		dir := t.TempDir()
		o := order{State: filepath.Join(dir, "state"), Data: filepath.Join(dir, "data")}
		name := fmt.Sprintf("contract-%d-%d", os.Getpid(), sites.Add(1))
		return machinetest.Site{
			Lab: name, Machine: here(t, o), Other: here(t, o),
			Left: func(t *testing.T) {
				t.Helper()
				testhost.CheckLeftovers(t, name, dir)
			},
			Kill: func(t *testing.T, pid int) {
				t.Helper()
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
			},
			Die: func(t *testing.T, a machine.PartSpec, after machinetest.Step) {
				t.Helper()
				o.Ask, o.After = a, after
				runOwner(t, o)
				if len(testhost.FindLeftovers(t, name, dir)) == 0 {
					t.Errorf("killed when %s: no leftovers to remove", after)
				}
			},
		}
	})
}

func here(t *testing.T, o order) *Fleet {
	t.Helper()
	f, err := two(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// two is this machine twice, with a node each.
func two(o order) (*Fleet, error) {
	var members []Member
	for _, name := range []string{"rack-1", "rack-2"} {
		m, err := local.New(local.Config{State: o.State + "-" + name, Data: o.Data + "-" + name, Exe: os.Args[0]})
		if err != nil {
			return nil, err
		}
		members = append(members, Member{Machine: m, Name: name, Addr: netip.MustParseAddr("127.0.0.1")})
	}
	f, err := New(members, map[string]string{"a": "rack-1", "b": "rack-2"})
	if err == nil && o.Plain {
		err = f.DisableEncryption()
	}
	return f, err
}

// runOwner runs an owner until it is dead.
func runOwner(t *testing.T, o order) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "agent", "owner")
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), os.Stderr
	err = cmd.Run()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !s.Signaled() || s.Signal() != syscall.SIGKILL {
		t.Fatalf("the owner was not killed: %v", err)
	}
}
