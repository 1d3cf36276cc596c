package lab

import (
	"context"
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

	"skerry/internal/host"
	"skerry/internal/link"
	"skerry/internal/netns"
	"skerry/internal/procfs"
)

func TestNothingIsLeft(t *testing.T) {
	c := config(t, "nothing")
	before := network(t)
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	sameNetwork(t, before, "while a lab is up")
	h := l.Hosts()[0]
	// One that Start knows of, and one that left its session, its parent and its name.
	if _, err := h.Start(t.Context(), host.Command{Name: "sleep", Path: "/bin/sleep", Args: []string{"1000"}}); err != nil {
		t.Fatal(err)
	}
	if out, err := shell(t, l, "n1", "setsid sh -c 'exec env -i sleep 1000' >/dev/null 2>&1 & echo data >file"); err != nil {
		t.Fatal(err, out)
	}
	if len(traces(t, c.Name, filepath.Dir(c.StateDir))) == 0 {
		t.Fatal("no traces of a lab that is up: the test looks in the wrong places")
	}
	if err := l.Down(t.Context()); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
	sameNetwork(t, before, "after a lab went down")
	if err := l.Down(t.Context()); err != nil {
		t.Errorf("down again: %v", err)
	}
	if _, err := h.Start(t.Context(), host.Command{Path: "/bin/true"}); err == nil {
		t.Error("a process started on a node that is gone")
	}
}

func TestTwoLabsSideBySide(t *testing.T) {
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
		t.Errorf("right after left went down: %v", err)
	}
	after, err := right.Stats(t.Context(), "n0~n1")
	if err != nil || after[0].AB.Packets <= stats[0].AB.Packets {
		t.Errorf("packets %d, then %d: %v", stats[0].AB.Packets, after[0].AB.Packets, err)
	}
}

func TestNameIsTaken(t *testing.T) {
	c := config(t, "taken")
	mustUp(t, c)
	for _, ephemeral := range []bool{true, false} {
		c.Ephemeral = ephemeral
		if _, err := Up(t.Context(), c); !errors.Is(err, ErrExists) {
			t.Errorf("error %v, want ErrExists", err)
		}
	}
	if _, err := Find(t.Context(), c.StateDir, c.Name); err != nil {
		t.Errorf("the lab that was there: %v", err)
	}
}

// failing is a backend that fails where it is told to.
type failing struct {
	userspaceBackend
	inStart, inCreate error
	cancel            context.CancelFunc
}

func (f failing) start(ctx context.Context, e engineEnv) (running, error) {
	if f.inStart != nil {
		return running{}, f.inStart
	}
	r, err := f.userspaceBackend.start(ctx, e)
	if err != nil {
		return r, err
	}
	r.Engine = failingEngine{r.Engine, f}
	return r, err
}

type failingEngine struct {
	link.Engine
	failing
}

func (f failingEngine) Create(ctx context.Context, specs []link.Spec) error {
	err := f.Engine.Create(ctx, specs)
	if f.cancel != nil {
		f.cancel()
	}
	return errors.Join(err, f.inCreate)
}

func TestUpFailsAndUndoes(t *testing.T) {
	boom := errors.New("boom")
	ctx, cancel := context.WithCancel(t.Context())
	tests := map[string]struct {
		ctx     context.Context
		backend failing
		want    error
	}{
		"no engine":           {t.Context(), failing{inStart: boom}, boom},
		"no links":            {t.Context(), failing{inCreate: boom}, boom},
		"interrupted":         {ctx, failing{cancel: cancel}, context.Canceled},
		"interrupted at once": {ctx, failing{}, context.Canceled},
	}
	for _, name := range []string{"no engine", "no links", "interrupted", "interrupted at once"} {
		t.Run(name, func(t *testing.T) {
			tt := tests[name]
			c := config(t, "fails")
			c.backends = []backend{tt.backend}
			if _, err := Up(tt.ctx, c); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			noTraces(t, c)
		})
	}
}

// TestLastingLab: another process finds it, changes it and ends it.
func TestLastingLab(t *testing.T) { onEngines(t, lastingLab) }

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
		t.Errorf("Sweep cleared %v, %v; the lab is to stay", swept, err)
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
	// 1 ms at scale 3, and 8 ms given at scale 2 and put to scale 3.
	got := []time.Duration{info.Links[0].AB.Latency, info.Links[0].BA.Latency, info.Links[1].AB.Latency}
	if diff := cmp.Diff([]time.Duration{12 * time.Millisecond, 3 * time.Millisecond, 3 * time.Millisecond}, got); diff != "" {
		t.Errorf("latencies: %s", diff)
	}
	if err := Remove(t.Context(), c.StateDir, c.Name); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
	if err := Remove(t.Context(), c.StateDir, c.Name); !errors.Is(err, ErrNotFound) {
		t.Errorf("removing it again: %v", err)
	}
}

func TestEmulatorDies(t *testing.T) {
	c := config(t, "dies")
	c.Ephemeral = false
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.state.Emulator.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for l.state.Emulator.Alive() {
	}
	if info, err := Find(t.Context(), c.StateDir, c.Name); err != nil || info.State != StateDamaged || info.Problem == "" {
		t.Errorf("found %+v, %v; want it damaged", info, err)
	}
	if _, err := Attach(t.Context(), c.StateDir, c.Name); !errors.Is(err, ErrDamaged) {
		t.Errorf("Attach: %v, want ErrDamaged", err)
	}
	if err := Remove(t.Context(), c.StateDir, c.Name); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
}

func TestOwnedLabIsLeftAlone(t *testing.T) {
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

// TestForeignThingsStay: what somebody else put on the machine, even in the lab's own
// namespaces, survives; only the devices of the lab leave it.
func TestForeignThingsStay(t *testing.T) {
	c := config(t, "foreign")
	l := mustUp(t, c)
	if err := os.MkdirAll(shownDir, 0o755); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(shownDir, "skerry-other-test-"+itoa(os.Getpid()))
	if err := netns.Throwaway(func() error { return netns.Make(other) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Unmount(other, unix.MNT_DETACH), os.Remove(other)); err != nil {
			t.Error(err)
		}
		os.Remove(shownDir)
	})
	// A user's shell in a node's namespace, as `ip netns exec` makes one.
	guest := exec.Command("sleep", "1000")
	err := netns.Throwaway(func() error {
		if err := netns.Enter(l.Hosts()[0].Netns()); err != nil {
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
	p, err := procfs.Of(guest.Process.Pid)
	if err != nil || !p.Alive() {
		t.Fatalf("the guest is gone: %v", err)
	}
	if _, err := netns.ID(other); err != nil {
		t.Errorf("the other namespace is gone: %v", err)
	}
	var devices []string
	err = netns.Do(fmt.Sprintf("/proc/%d/ns/net", guest.Process.Pid), func() error {
		devices = network(t)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(devices, func(d string) bool { return strings.HasPrefix(d, "device lk") }) {
		t.Errorf("the guest still has %v", devices)
	}
}

func TestConfigIsChecked(t *testing.T) {
	tests := map[string]func(*Config){
		"name":           func(c *Config) { c.Name = "No Such" },
		"no nodes":       func(c *Config) { c.Topology.Nodes = nil },
		"node twice":     func(c *Config) { c.Topology.Nodes[1].Name = "n0" },
		"node with path": func(c *Config) { c.Topology.Nodes[1].Name = "../n0" },
		"link twice":     func(c *Config) { c.Topology.Links[1].ID = "n0~n1" },
		"link to itself": func(c *Config) { c.Topology.Links[1].B = c.Topology.Links[1].A },
		"link nowhere":   func(c *Config) { c.Topology.Links[1].B = "n7" },
		"scale":          func(c *Config) { c.Scale = -1 },
		"no program":     func(c *Config) { c.Exe = "/nowhere/skerry" },
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			c := Config{Name: "checked", Topology: ring(3, 0), Exe: os.Args[0], StateDir: filepath.Join(t.TempDir(), "state")}
			spoil(&c)
			if _, err := Up(t.Context(), c); !errors.Is(err, ErrInvalid) {
				t.Errorf("error %v, want ErrInvalid", err)
			}
			if _, err := os.Stat(c.StateDir); err == nil {
				t.Error("something was made")
			}
		})
	}
}

func TestChoose(t *testing.T) {
	missing := errors.New("missing")
	fast, slow, gone := fakeBackend{"fast", nil}, fakeBackend{"slow", nil}, fakeBackend{"gone", missing}
	tests := []struct {
		asked     string
		from      []backend
		want, why string
	}{
		{"", []backend{fast, slow}, "fast", "the kernel has it"},
		{"auto", []backend{gone, slow}, "slow", "missing"},
		{"slow", []backend{fast, slow}, "slow", "it was asked for"},
	}
	for _, tt := range tests {
		b, why, err := choose(tt.asked, tt.from)
		if err != nil || b.name() != tt.want || why != tt.why {
			t.Errorf("%q: %v because %q, %v; want %s because %q", tt.asked, b, why, err, tt.want, tt.why)
		}
	}
	if _, _, err := choose("gone", []backend{fast, gone}); !errors.Is(err, missing) {
		t.Errorf("an engine that is missing: %v", err)
	}
	if _, _, err := choose("other", []backend{fast}); err == nil {
		t.Error("an engine nobody knows was chosen")
	}
}

type fakeBackend struct {
	named string
	lack  error
}

func (f fakeBackend) name() string     { return f.named }
func (f fakeBackend) available() error { return f.lack }
func (f fakeBackend) start(context.Context, engineEnv) (running, error) {
	return running{}, errors.ErrUnsupported
}
func (f fakeBackend) connect(context.Context, engineEnv, []link.Spec) (running, error) {
	return running{}, errors.ErrUnsupported
}

func TestNameOf(t *testing.T) {
	for from, want := range map[string]string{
		"azure8": "azure8", "My Cloud": "my-cloud", "8 sites!": "sites", "": "lab", "ring:16,rtt=40ms": "ring-16-rtt-40ms",
		strings.Repeat("x", 60): strings.Repeat("x", 40),
	} {
		if got := NameOf(from); got != want || !validName.MatchString(got) {
			t.Errorf("NameOf(%q) = %q, want %q", from, got, want)
		}
	}
}

// TestDirectoriesThatAreNotOurs: one that a user made stays when its last lab goes, one
// that somebody else put where anyone may is refused.
func TestDirectoriesThatAreNotOurs(t *testing.T) {
	c := config(t, "dirs")
	for _, dir := range []string{c.StateDir, c.DataDir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{c.StateDir, c.DataDir} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%s: %v, %v; want it empty", dir, entries, err)
		}
	}
	parent := filepath.Dir(c.DataDir)
	if err := errors.Join(os.Chmod(parent, 0o777|os.ModeSticky), os.Chown(c.DataDir, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	if l, err := Up(t.Context(), c); err == nil {
		t.Errorf("%s of another user was taken", c.DataDir)
		_ = l.Down(t.Context())
	}
	dangling := filepath.Join(parent, "dangling")
	if err := os.Symlink("/nowhere/at/all", dangling); err != nil {
		t.Fatal(err)
	}
	c.DataDir = dangling
	if l, err := Up(t.Context(), c); err == nil {
		t.Error("a link to nowhere was taken")
		_ = l.Down(t.Context())
	}
}
