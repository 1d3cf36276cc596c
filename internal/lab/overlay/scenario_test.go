package overlay_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"skerry/internal/lab"
	"skerry/internal/lab/overlay"
	"skerry/internal/lab/overlay/babel"
	"skerry/internal/lab/overlay/tinc"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/link/tunnel"
	"skerry/internal/link/userspace"
	"skerry/internal/topology"
	"skerry/test/testkit"
)

// TestMain lets labs of the tests start this program as their agents.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		work := userspace.Main
		if os.Args[2] == "wireguard" {
			work = tunnel.Main
		}
		if err := work(ctx, os.Stdin, os.Stdout, slog.New(slog.DiscardHandler)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// installed returns an installed overlay with settings.
func installed(t *testing.T, a overlay.Definition, settings map[string]any) overlay.Overlay {
	t.Helper()
	testkit.Need(t, testkit.Root, testkit.TUN, testkit.Installed(a.Recipe))
	o, err := lab.NewOverlay(t.Context(), topology.Overlay{Kind: a.Name, Settings: map[string]map[string]any{a.Name: settings}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func newBabel(t *testing.T) overlay.Overlay { return installed(t, babel.Definition, nil) }

// newTinc reacts to a failed link within seconds.
func newTinc(t *testing.T) overlay.Overlay {
	return installed(t, tinc.Definition, map[string]any{"ping_interval": "3s", "ping_timeout": "3s"})
}

// up brings up a topology with an overlay.
func up(t *testing.T, o overlay.Overlay, encryption, nodes string, links ...topology.Link) *lab.Lab {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cloud := topology.Topology{Name: "t", Links: links, Encryption: encryption, Overlay: topology.Overlay{Kind: o.Name()}}
	for _, n := range strings.Fields(nodes) {
		cloud.Sites = append(cloud.Sites, topology.Site{Name: n})
		cloud.Nodes = append(cloud.Nodes, topology.Node{Name: n, Site: n, Role: topology.Data})
	}
	l, err := lab.Up(t.Context(), lab.Config{
		Name: "overlay", Topology: cloud, Scale: 1, Engine: "userspace", StateDir: t.TempDir(), DataDir: t.TempDir(),
		Exe: exe, Overlay: o, Ephemeral: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func wire(id, a, b string, rtt time.Duration) topology.Link {
	q := link.Quality{Latency: rtt / 2}
	return topology.Link{ID: id, A: a, B: b, AB: q, BA: q}
}

// fig2 is the worked example of "Fragmented Hybrid Clouds".
func fig2(t *testing.T, o overlay.Overlay) *lab.Lab { return fig2Over(t, o, "") }

func fig2Over(t *testing.T, o overlay.Overlay, encryption string) *lab.Lab {
	const ms = time.Millisecond
	return up(t, o, encryption, "vm0 vm1 vm2",
		wire("a", "vm0", "vm2", 210*ms), wire("b", "vm0", "vm2", 140*ms),
		wire("c", "vm0", "vm1", 40*ms), wire("d", "vm1", "vm2", 50*ms))
}

// cut disables or enables links silently.
func cut(t *testing.T, l *lab.Lab, down bool, ids ...string) {
	t.Helper()
	var changes []link.Change
	for _, id := range ids {
		for _, k := range l.Links() {
			if k.ID == id {
				k.AB.Down, k.BA.Down = down, down
				changes = append(changes, link.Change{ID: id, AB: &k.AB, BA: &k.BA})
			}
		}
	}
	if err := l.Set(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
}

// rtt returns the round trip between two nodes, 0 without a reply.
func rtt(t *testing.T, l *lab.Lab, from, to string) time.Duration {
	t.Helper()
	a, err := l.Node(from)
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Node(to)
	if err != nil {
		t.Fatal(err)
	}
	got, err := probe.MeasureRTT(t.Context(), []probe.Pair{{From: a, To: b}}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	return got[0].Median
}

// within repeats a check until it returns nil.
func within(t *testing.T, limit time.Duration, what string, ask func() error) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := overlay.WaitUntil(ctx, func(context.Context) error { return ask() }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	t.Logf("%s: after %v", what, time.Since(began).Round(time.Millisecond))
}

// usesPath returns a check that packets use a path in both directions.
func usesPath(l *lab.Lab, from, to, want string) func() error {
	return func() error {
		there, err := l.Trace(context.Background(), from, to)
		if err != nil {
			return err
		}
		back, err := l.Trace(context.Background(), to, from)
		if err != nil {
			return err
		}
		slices.Reverse(back.Links)
		if there.String() != want || back.String() != want {
			return fmt.Errorf("the path there is %s, back %s, want %s", there, back, want)
		}
		return nil
	}
}

// far bounds the waits of tests: an event of one second may take long on a busy machine.
const far = 3 * time.Minute

// With every registered overlay, nodes without a common link reach each other through the node between them.
func TestOverlaysForwardPackets(t *testing.T) {
	for _, a := range lab.Overlays() {
		t.Run(a.Name, func(t *testing.T) {
			l := up(t, installed(t, a, nil), "", "vm0 vm1 vm2", wire("c", "vm0", "vm1", 20*time.Millisecond),
				wire("d", "vm1", "vm2", 20*time.Millisecond))
			within(t, far, "a reply from the other end", func() error {
				if rtt(t, l, "vm0", "vm2") == 0 {
					return overlay.ErrNoRoute
				}
				return nil
			})
		})
	}
}

func TestBabelUsesShortestPath(t *testing.T) {
	l := fig2(t, newBabel(t))
	within(t, far, "at the start: c+d", usesPath(l, "vm0", "vm2", "c+d"))
	// c and d have 90 ms; on a busy machine a packet may be late, or take another path.
	within(t, far, "the round trip is that of c+d", func() error {
		if got := rtt(t, l, "vm0", "vm2"); got < 90*time.Millisecond || got > 130*time.Millisecond {
			return fmt.Errorf("the round trip is %v", got)
		}
		return nil
	})
	cut(t, l, true, "c")
	within(t, far, "without c: b", usesPath(l, "vm0", "vm2", "b"))
	cut(t, l, true, "b")
	within(t, far, "without b and c: a", usesPath(l, "vm0", "vm2", "a"))
	cut(t, l, false, "b")
	within(t, far, "b is back", usesPath(l, "vm0", "vm2", "b"))
	cut(t, l, false, "c")
	within(t, far, "c is back: c+d", usesPath(l, "vm0", "vm2", "c+d"))
}

// Between sites of one region, a direct link of 3.23 ms is shorter than two links of 1.26 and 2.57 ms, and than three
// of 1.2 ms.
func TestBabelUsesDirectLinkInRegion(t *testing.T) {
	const us = time.Microsecond
	l := up(t, newBabel(t), "", "a b c x y", wire("ab", "a", "b", 1260*us), wire("bc", "b", "c", 2570*us), wire("ac", "a", "c", 3230*us),
		wire("ax", "a", "x", 1200*us), wire("xy", "x", "y", 1200*us), wire("yc", "y", "c", 1200*us))
	if err := l.WaitRoutes(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, far, "the direct link", usesPath(l, "a", "c", "ac"))
}

func TestBabelFollowsLatency(t *testing.T) {
	l := fig2(t, newBabel(t))
	within(t, far, "c+d", usesPath(l, "vm0", "vm2", "c+d"))
	slow := link.Quality{Latency: 150 * time.Millisecond}
	if err := l.Set(t.Context(), []link.Change{{ID: "d", AB: &slow, BA: &slow}}); err != nil {
		t.Fatal(err)
	}
	within(t, far, "d is slow: b", usesPath(l, "vm0", "vm2", "b"))
	fast := link.Quality{Latency: 25 * time.Millisecond}
	if err := l.Set(t.Context(), []link.Change{{ID: "d", AB: &fast, BA: &fast}}); err != nil {
		t.Fatal(err)
	}
	within(t, far, "d is fast: c+d", usesPath(l, "vm0", "vm2", "c+d"))
}

// The metric of links follows the scale, so that a path of two of the longest links has the same metric at any scale:
// in a lab that came up without distance, in one with long distances, and in one that returned.
func TestBabelFollowsScale(t *testing.T) {
	l := up(t, newBabel(t), "", "vm0 vm1 vm2", wire("c", "vm0", "vm1", 60*time.Millisecond), wire("d", "vm1", "vm2", 60*time.Millisecond))
	for _, scale := range []float64{0, 5, 1} {
		if err := l.Scale(t.Context(), scale); err != nil {
			t.Fatal(err)
		}
		if err := l.WaitRoutes(t.Context()); err != nil {
			t.Fatal(err)
		}
		within(t, far, fmt.Sprintf("at a scale of %g: c+d", scale), usesPath(l, "vm0", "vm2", "c+d"))
	}
	if n := l.OverlayRestarts(); n != 0 {
		t.Errorf("%d daemons count as ended by themselves", n)
	}
}

func TestBabelDetectsCarrier(t *testing.T) {
	l := fig2(t, newBabel(t))
	within(t, far, "c+d", usesPath(l, "vm0", "vm2", "c+d"))
	if err := l.Carrier("c", false); err != nil {
		t.Fatal(err)
	}
	within(t, far, "without c: b", usesPath(l, "vm0", "vm2", "b"))
	if err := l.Carrier("c", true); err != nil {
		t.Fatal(err)
	}
	within(t, far, "c is back: c+d", usesPath(l, "vm0", "vm2", "c+d"))
}

// One direction of a link fails, and then the other one, too.
func TestBabelAvoidsOneWayLinks(t *testing.T) {
	l := fig2(t, newBabel(t))
	within(t, far, "c+d", usesPath(l, "vm0", "vm2", "c+d"))
	dead, alive := link.Quality{Latency: 20 * time.Millisecond, Down: true}, link.Quality{Latency: 20 * time.Millisecond}
	for _, c := range []link.Change{{ID: "c", AB: &dead}, {ID: "c", BA: &dead}, {ID: "c", AB: &alive}} {
		if err := l.Set(t.Context(), []link.Change{c}); err != nil {
			t.Fatal(err)
		}
		within(t, far, "b", usesPath(l, "vm0", "vm2", "b"))
	}
	if err := l.Set(t.Context(), []link.Change{{ID: "c", BA: &alive}}); err != nil {
		t.Fatal(err)
	}
	within(t, far, "c+d", usesPath(l, "vm0", "vm2", "c+d"))
}

func TestKilledDaemonIsRestarted(t *testing.T) {
	l := fig2(t, newBabel(t))
	within(t, far, "c+d", usesPath(l, "vm0", "vm2", "c+d"))
	kill(t, l, "vm1", "babeld")
	within(t, far, "the daemon on vm1 runs again", func() error {
		if n := l.OverlayRestarts(); n != 1 {
			return fmt.Errorf("%d restarts", n)
		}
		return nil
	})
	within(t, far, "c+d", usesPath(l, "vm0", "vm2", "c+d"))
}

// kill ends the processes with a name on a node with SIGKILL.
func kill(t *testing.T, l *lab.Lab, node, name string) {
	t.Helper()
	h, err := l.Host(node)
	if err != nil {
		t.Fatal(err)
	}
	exes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, exe := range exes {
		dir := filepath.Dir(exe)
		path, err := os.Readlink(exe)
		if err != nil || filepath.Base(path) != name {
			continue
		}
		if cwd, err := os.Readlink(filepath.Join(dir, "cwd")); err != nil || !strings.HasPrefix(cwd, h.Dir()) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed++
	}
	if killed == 0 {
		t.Fatalf("no %s is running on %s", name, node)
	}
}

// FHC on tinc: it uses b, then a when b is cut, c+d when both are cut, and b again when b returns.
func TestTincUsesAnsweringAddress(t *testing.T) {
	l := fig2(t, newTinc(t))
	round := func(want time.Duration) func() error {
		return func() error {
			if got := rtt(t, l, "vm0", "vm2"); got < want || got > want+15*time.Millisecond {
				return fmt.Errorf("the round trip is %v, want %v", got, want)
			}
			return nil
		}
	}
	const ms = time.Millisecond
	within(t, far, "at the start: b", round(140*ms))
	cut(t, l, true, "b")
	within(t, far, "without b: a", round(210*ms))
	cut(t, l, true, "a")
	within(t, far, "without a and b: c+d", round(90*ms))
	cut(t, l, false, "b")
	within(t, far, "b is back", round(140*ms))
}
