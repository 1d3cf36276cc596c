package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/internal/link"
	"skerry/internal/machine/host"
	"skerry/test/testkit/testhost"
)

func TestDownLeavesNothing(t *testing.T) {
	c := config(t, "nothing")
	before := ownNetwork(t)
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	sameNetwork(t, before, "while a lab is up")
	h := l.Hosts()[0]
	// One process that Start knows, and one that left its session, its parent and its name.
	if _, err := h.Start(t.Context(), host.Command{Name: "sleep", Path: "/bin/sleep", Args: []string{"1000"}}); err != nil {
		t.Fatal(err)
	}
	if out, err := shell(t, l, "n1", "setsid sh -c 'exec env -i sleep 1000' >/dev/null 2>&1 & echo data >file"); err != nil {
		t.Fatal(err, out)
	}
	if len(testhost.FindLeftovers(t, c.Name, filepath.Dir(c.StateDir))) == 0 {
		t.Fatal("no traces of a running lab: the test looks in the wrong places")
	}
	if err := l.Down(t.Context()); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
	sameNetwork(t, before, "after a lab went down")
	if err := l.Down(t.Context()); err != nil {
		t.Errorf("a second Down: %v", err)
	}
	if _, err := h.Start(t.Context(), host.Command{Path: "/bin/true"}); err == nil {
		t.Error("a process was started on a removed node")
	}
}

func TestTwoLabsRunConcurrently(t *testing.T) {
	a, b := config(t, "left"), config(t, "right")
	b.StateDir, b.DataDir = a.StateDir, a.DataDir
	left, right := mustUp(t, a), mustUp(t, b)
	for _, l := range []*Lab{left, right} {
		if err := reach(t, l, "n0", "n1"); err != nil {
			t.Errorf("%s: %v", l.Name(), err)
		}
	}
	stats, err := right.Stats(t.Context(), "n0~n1")
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Down(t.Context()); err != nil {
		t.Error(err)
	}
	if err := reach(t, right, "n0", "n1"); err != nil {
		t.Errorf("the right lab after the left one went down: %v", err)
	}
	after, err := right.Stats(t.Context(), "n0~n1")
	if err != nil || after[0].AB.Packets <= stats[0].AB.Packets {
		t.Errorf("packets %d, then %d: %v", stats[0].AB.Packets, after[0].AB.Packets, err)
	}
}

func TestTakenNameIsRejected(t *testing.T) {
	c := config(t, "taken")
	mustUp(t, c)
	for _, ephemeral := range []bool{true, false} {
		c.Ephemeral = ephemeral
		if _, err := Up(t.Context(), c); !errors.Is(err, ErrExists) {
			t.Errorf("error %v, want ErrExists", err)
		}
	}
	if _, err := Find(t.Context(), c.StateDir, c.Name); err != nil {
		t.Errorf("the existing lab: %v", err)
	}
}

// Another process finds, changes and ends a persistent lab.
func TestPersistentLabIsFoundByOtherProcesses(t *testing.T) { onEngines(t, lastingLab) }

func lastingLab(t *testing.T, engine string) {
	c := config(t, "lasting")
	c.Engine, c.Ephemeral, c.Scale = engine, false, 2
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if swept, err := Sweep(t.Context(), c.StateDir); err != nil || len(swept) > 0 {
		t.Errorf("Sweep cleared %v, %v; want the lab kept", swept, err)
	}
	again, err := Attach(t.Context(), c.StateDir, c.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := reach(t, again, "n0", "n2"); err != nil {
		t.Error(err)
	}
	q := link.Quality{Latency: 8 * time.Millisecond}
	if err := again.Set(t.Context(), []link.Change{{ID: "n0~n1", AB: &q}}); err != nil {
		t.Error(err)
	}
	if err := again.Scale(t.Context(), 3); err != nil {
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	info, err := Find(t.Context(), c.StateDir, "")
	if err != nil || info.State != StateUp || info.Factor != 3 || len(info.Nodes) != 3 {
		t.Errorf("found %+v, %v", info, err)
	}
	// 1 ms at scale 3, and 8 ms set at scale 2 and scaled to 3.
	got := []time.Duration{info.Links[0].AB.Latency, info.Links[0].BA.Latency, info.Links[1].AB.Latency}
	if diff := cmp.Diff([]time.Duration{12 * time.Millisecond, 3 * time.Millisecond, 3 * time.Millisecond}, got); diff != "" {
		t.Errorf("latencies: %s", diff)
	}
	if err := Remove(t.Context(), c.StateDir, c.Name); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
	if err := Remove(t.Context(), c.StateDir, c.Name); !errors.Is(err, ErrNotFound) {
		t.Errorf("removing the lab again: %v", err)
	}
}

func TestEmulatorDies(t *testing.T) {
	c := config(t, "dies")
	c.Ephemeral = false
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	emulator, err := procfs.FindProcess(l.EmulatorPID())
	if err != nil {
		t.Fatal(err)
	}
	if err := emulator.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for emulator.Alive() {
	}
	if info, err := Find(t.Context(), c.StateDir, c.Name); err != nil || info.State != StateDamaged || info.Problem == "" {
		t.Errorf("found %+v, %v; want a damaged lab", info, err)
	}
	if _, err := Attach(t.Context(), c.StateDir, c.Name); !errors.Is(err, ErrDamaged) {
		t.Errorf("Attach: %v, want ErrDamaged", err)
	}
	if err := Remove(t.Context(), c.StateDir, c.Name); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
}

func TestSweepKeepsOwnedLab(t *testing.T) {
	c := config(t, "owned")
	l := mustUp(t, c)
	if swept, err := Sweep(t.Context(), c.StateDir); err != nil || len(swept) > 0 {
		t.Errorf("Sweep cleared %v, %v", swept, err)
	}
	if err := Remove(t.Context(), c.StateDir, c.Name); !errors.Is(err, ErrInUse) {
		t.Errorf("Remove: %v, want ErrInUse", err)
	}
	other, err := Attach(t.Context(), c.StateDir, c.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Scale(t.Context(), 2); !errors.Is(err, ErrInUse) {
		t.Errorf("Scale by another process: %v, want ErrInUse", err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if info, err := Find(t.Context(), c.StateDir, c.Name); err != nil || info.State != StateOwned || info.OwnerPID != os.Getpid() {
		t.Errorf("found %+v, %v", info, err)
	}
	if err := l.Scale(t.Context(), 2); err != nil || l.Factor() != 2 {
		t.Errorf("Scale by its owner: %v, factor %g", err, l.Factor())
	}
}

// Objects of another user of the machine survive, even in the lab's namespaces; only the lab's devices are removed from
// them.
func TestDownKeepsForeignObjects(t *testing.T) {
	c := config(t, "foreign")
	l := mustUp(t, c)
	if err := os.MkdirAll(testhost.NetnsDir, 0o755); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(testhost.NetnsDir, "skerry-other-test-"+itoa(os.Getpid()))
	if err := netns.OnNewThread(func() error { return netns.Create(other) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Unmount(other, unix.MNT_DETACH), os.Remove(other)); err != nil {
			t.Error(err)
		}
		os.Remove(testhost.NetnsDir)
	})
	// A user's shell in the namespace of a node, as from `ip netns exec`.
	guest := exec.Command("sleep", "1000")
	err := netns.OnNewThread(func() error {
		if err := netns.Enter(l.LocalHosts()[0].Netns()); err != nil {
			return err
		}
		return guest.Start()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = guest.Process.Kill()
		_ = guest.Wait()
	}()
	if err := l.Down(t.Context()); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
	p, err := procfs.FindProcess(guest.Process.Pid)
	if err != nil || !p.Alive() {
		t.Fatalf("the foreign process has ended: %v", err)
	}
	if _, err := netns.ID(other); err != nil {
		t.Errorf("the foreign namespace was removed: %v", err)
	}
	var devices []string
	err = netns.Do(fmt.Sprintf("/proc/%d/ns/net", guest.Process.Pid), func() error {
		devices = ownNetwork(t)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(devices, func(d string) bool { return strings.HasPrefix(d, "device lk") }) {
		t.Errorf("the foreign process still has devices %v", devices)
	}
}
