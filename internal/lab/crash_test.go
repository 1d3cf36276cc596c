package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/link/tunnel"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/host"
	"skerry/internal/machine/journal"
	"skerry/internal/topology"
	"skerry/test/testkit/testhost"
)

// order is the task of an owner process.
type order struct {
	Name, State, Data string
	// DieAt is the stage of Up at which the process kills itself, "" for none.
	DieAt string
	// Tunnels is the number of encrypted links; 0 is a ring without encryption.
	Tunnels int
	// Volume and Service are those of the lab, if any.
	Volume  topology.Volume
	Service topology.Service
}

func orderOf(c Config) order { return order{Name: c.Name, State: c.StateDir, Data: c.DataDir} }

// owner is this program as the owner of a lab that is killed: it brings the lab up, starts a process on each node and
// reports that.
func owner(ctx context.Context) error {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return err
	}
	c := Config{
		Name: o.Name, StateDir: o.State, DataDir: o.Data, Topology: ring(3, time.Millisecond), Scale: 1,
		Engine: emulator.Userspace, Exe: os.Args[0], Ephemeral: true, Ports: []int{inner},
	}
	c.Topology.Volume, c.Topology.Service = o.Volume, o.Service
	if o.Tunnels > 0 {
		var err error
		spec := topology.Spec{From: "azure8", Encryption: topology.WireGuard, Mesh: topology.MeshSpec{Links: o.Tunnels}}
		if c.Topology, err = spec.Build(".", os.ReadFile); err != nil {
			return err
		}
	}
	c.Progress = func(stage string, done, _ int) {
		if o.DieAt == fmt.Sprintf("%s %d", stage, done) {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	l, err := Up(ctx, c)
	if err != nil {
		return err
	}
	for _, n := range l.Hosts() {
		h, err := l.Member(n.Name())
		if err != nil {
			return errors.Join(err, l.Down(ctx))
		}
		// The child clears its environment, as redis-server does with its title.
		_, err = h.Start(ctx, host.Command{Name: "sleep", Path: "/usr/bin/env", Args: []string{"-i", "/bin/sleep", "1000"}})
		if err != nil {
			return errors.Join(err, l.Down(ctx))
		}
	}
	fmt.Println("up")
	<-ctx.Done()
	return l.Down(context.WithoutCancel(ctx))
}

// child is an owner process.
type child struct {
	cmd *exec.Cmd
	// ready is closed when the lab is up or the process has ended.
	ready chan struct{}
}

func startOwner(t *testing.T, o order) child {
	t.Helper()
	task, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	c := child{exec.Command(os.Args[0], "agent", "owner"), make(chan struct{})}
	c.cmd.Stdin, c.cmd.Stderr = strings.NewReader(string(task)), os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.ready)
		_, _ = bufio.NewReader(out).ReadString('\n') // the owner may be killed first
	}()
	return c
}

// killed kills an owner that has not killed itself, and waits for it.
func (c child) killed() {
	_ = c.cmd.Process.Kill()
	<-c.ready
	_ = c.cmd.Wait()
}

// mustSweep removes the leftovers of an owner, twice, because Sweep must be idempotent.
func mustSweep(t *testing.T, c Config) {
	t.Helper()
	for range 2 {
		if _, err := Sweep(t.Context(), c.StateDir); err != nil {
			t.Errorf("Sweep: %v", err)
		}
	}
	noTraces(t, c)
}

func TestOwnerKilledAtEveryStageLeavesNothing(t *testing.T) {
	for _, stage := range []string{"namespaces 1", "namespaces 3", "links 0", "links 3", "routes 1", "routes 3", ""} {
		t.Run(stage, func(t *testing.T) {
			c := config(t, "stage")
			o := orderOf(c)
			o.DieAt = stage
			p := startOwner(t, o)
			<-p.ready
			p.killed()
			if left := testhost.FindLeftovers(t, c.Name, filepath.Dir(c.StateDir)); len(left) == 0 {
				t.Error("nothing was left over: the owner was not killed at the intended stage")
			}
			mustSweep(t, c)
		})
	}
}

func TestOwnerKilledAtAnyTimeLeavesNothing(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		c := config(t, "any")
		wait := time.Duration(rand.Int64N(int64(150 * time.Millisecond)))
		p := startOwner(t, orderOf(c))
		select {
		case <-p.ready:
		case <-time.After(wait):
		}
		p.killed()
		mustSweep(t, c)
		if t.Failed() {
			t.Fatalf("the owner was killed after %v", wait)
		}
	}
}

// The process of the tunnels is not a child of the lab's emulator and has devices in every namespace. It is removed,
// too.
func TestKilledOwnerLeavesNoTunnels(t *testing.T) {
	c := config(t, "tunnels")
	o := orderOf(c)
	o.Tunnels = 64
	p := startOwner(t, o)
	<-p.ready
	tunnels := 0
	for _, trace := range testhost.FindLeftovers(t, c.Name, filepath.Dir(c.StateDir)) {
		if strings.Contains(trace, "agent wireguard") {
			tunnels++
		}
	}
	if inKernel := tunnel.CheckKernel() == nil; !inKernel && tunnels != 1 {
		t.Errorf("%d processes of tunnels, want 1", tunnels)
	}
	p.killed()
	mustSweep(t, c)
}

// The name of a lab whose owner was killed is available.
func TestUpReplacesDeadLab(t *testing.T) {
	c := config(t, "over")
	p := startOwner(t, orderOf(c))
	<-p.ready
	p.killed()
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context()); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
}

func TestDamagedJournal(t *testing.T) {
	tests := map[string]func(p journal.LabDir) error{
		"cut off":  func(p journal.LabDir) error { return os.Truncate(p.Path(journal.JournalFile), 40) },
		"empty":    func(p journal.LabDir) error { return os.Truncate(p.Path(journal.JournalFile), 0) },
		"no state": func(p journal.LabDir) error { return os.Remove(p.Path(journal.RecordFile)) },
		"no ID":    func(p journal.LabDir) error { return os.Remove(p.Path(journal.IDFile)) },
		"leading garbage": func(p journal.LabDir) error {
			text, err := os.ReadFile(p.Path(journal.JournalFile))
			if err != nil {
				return err
			}
			return os.WriteFile(p.Path(journal.JournalFile), append([]byte("{\"plan\":\x00\xff"), text...), 0o600)
		},
		"foreign directory": func(p journal.LabDir) error {
			// A damaged journal must not cause the removal of anything outside the lab.
			text, err := os.ReadFile(p.Path(journal.JournalFile))
			if err != nil {
				return err
			}
			victim := filepath.Join(p.Store.Dir(), "..", "victim")
			return errors.Join(os.Mkdir(victim, 0o755), os.WriteFile(filepath.Join(victim, "file"), nil, 0o644),
				os.WriteFile(p.Path(journal.JournalFile), []byte(strings.ReplaceAll(string(text), "/data/", "/victim/")), 0o600))
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			c := config(t, "damaged")
			p := startOwner(t, orderOf(c))
			<-p.ready
			p.killed()
			if err := damage(placeOf(t, c)); err != nil {
				t.Fatal(err)
			}
			t.Setenv("SKERRY_DATA", c.DataDir) // where directories without a journal are found
			if name == "foreign directory" {
				victim := filepath.Join(filepath.Dir(c.StateDir), "victim")
				if _, err := Sweep(t.Context(), c.StateDir); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(filepath.Join(victim, "file")); err != nil {
					t.Errorf("files outside the lab: %v", err)
				}
				if err := os.RemoveAll(victim); err != nil {
					t.Fatal(err)
				}
			}
			mustSweep(t, c)
		})
	}
}

// placeOf returns the location of a lab's files.
func placeOf(t *testing.T, c Config) journal.LabDir {
	t.Helper()
	s, err := journal.OpenStore(c.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	return s.Lab(c.Name)
}

// The disk becomes full before each step in turn.
func TestFullDisk(t *testing.T) {
	failed, came := 0, 0
	for blocks := 2; came == 0; blocks += 2 {
		c := config(t, "full")
		mount := filepath.Join(filepath.Dir(c.StateDir), "disk")
		if err := os.Mkdir(mount, 0o755); err != nil {
			t.Fatal(err)
		}
		size := fmt.Sprintf("nr_blocks=%d,nr_inodes=%d", blocks, 4+blocks)
		if err := unix.Mount("tmpfs", mount, "tmpfs", 0, size); err != nil {
			t.Fatal(err)
		}
		c.StateDir, c.DataDir = filepath.Join(mount, "state"), filepath.Join(mount, "data")
		l, err := Up(t.Context(), c)
		switch {
		case err == nil:
			came++
			fill(t, mount)
			if err := l.Down(t.Context()); err != nil {
				t.Errorf("Down on a full disk: %v", err)
			}
		case strings.Contains(err.Error(), unix.ENOSPC.Error()) && advice.Of(err) != "":
			failed++
		default:
			t.Errorf("with %s: %v, want ENOSPC", size, err)
			came++
		}
		_ = os.Remove(filepath.Join(mount, "filler")) // it exists if Up had space
		for _, trace := range testhost.FindLeftovers(t, c.Name, mount) {
			t.Errorf("with %s left: %s", size, trace)
		}
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
	if failed < 3 {
		t.Errorf("Up failed %d times before it had space: the test does not cover the stages", failed)
	}
}

// Sweep needs no disk space.
func TestSweepNeedsNoDiskSpace(t *testing.T) {
	c := config(t, "fullsweep")
	mount := filepath.Join(filepath.Dir(c.StateDir), "disk")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	c.StateDir, c.DataDir = filepath.Join(mount, "state"), filepath.Join(mount, "data")
	p := startOwner(t, orderOf(c))
	<-p.ready
	fill(t, mount)
	p.killed()
	if swept, err := Sweep(t.Context(), c.StateDir); err != nil || len(swept) != 1 {
		t.Errorf("Sweep cleared %v, %v", swept, err)
	}
	if err := os.Remove(filepath.Join(mount, "filler")); err != nil {
		t.Fatal(err)
	}
	noTraces(t, c)
}

// fill uses all space of a disk, for data or for names.
func fill(t *testing.T, mount string) {
	t.Helper()
	f, err := os.Create(filepath.Join(mount, "filler"))
	if errors.Is(err, unix.ENOSPC) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}
