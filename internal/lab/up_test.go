package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry/internal/link"
	"skerry/internal/machine/emulator"
	"skerry/internal/machine/host"
	"skerry/internal/topology"
	"skerry/test/testkit"
)

// ring is a topology of nodes in a ring.
func ring(n int, latency time.Duration) topology.Topology {
	t := topology.Topology{Name: "ring"}
	q := link.Quality{Latency: latency}
	for i := range n {
		t.Nodes = append(t.Nodes, topology.Node{Name: fmt.Sprintf("n%d", i), Role: topology.Data})
	}
	for i := range n {
		if j := (i + 1) % n; n > 2 || i < j {
			a, b := t.Nodes[i].Name, t.Nodes[j].Name
			t.Links = append(t.Links, topology.Link{ID: a + "~" + b, A: a, B: b, AB: q, BA: q})
		}
	}
	return t
}

// config is the configuration of a small lab in directories of the test.
func config(t *testing.T, name string) Config {
	t.Helper()
	testkit.Need(t, testkit.Root, testkit.TUN)
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return Config{
		Name: name + "-" + itoa(os.Getpid()), Topology: ring(3, time.Millisecond), Scale: 1, Engine: emulator.Userspace, Exe: os.Args[0],
		StateDir: filepath.Join(dir, "state"), DataDir: filepath.Join(dir, "data"), Ephemeral: true,
	}
}

// onEngines runs a test with every available engine.
func onEngines(t *testing.T, test func(t *testing.T, engine string)) {
	for _, b := range emulator.Kinds() {
		t.Run(b.Name(), func(t *testing.T) {
			testkit.Need(t, testkit.Feature{Name: b.Name(), Missing: func() string {
				if err := b.Available(); err != nil {
					return err.Error()
				}
				return ""
			}})
			test(t, b.Name())
		})
	}
}

// mustUp brings up a lab that is taken down at the end of the test.
func mustUp(t *testing.T, c Config) *Lab {
	t.Helper()
	l, err := Up(t.Context(), c)
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

// shell runs a script on a node and returns its output.
func shell(t *testing.T, l *Lab, node, script string) (string, error) {
	t.Helper()
	h, err := l.Node(node)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p, err := h.Start(t.Context(), host.Command{Name: "shell", Path: "/bin/sh", Args: []string{"-c", script}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	return strings.TrimSpace(out.String()), p.Err()
}

// reach sends one message from a node to another over TCP.
func reach(t *testing.T, l *Lab, from, to string) error {
	t.Helper()
	a, errA := l.Node(from)
	b, errB := l.Node(to)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	if err := b.Do(func() (err error) {
		listener, err = net.Listen("tcp", b.Addr()+":0")
		return err
	}); err != nil {
		return err
	}
	defer listener.Close()
	return a.Do(func() error {
		c, err := net.DialTimeout("tcp", listener.Addr().String(), time.Minute)
		if err != nil {
			return err
		}
		defer c.Close()
		if got, _, _ := net.SplitHostPort(c.LocalAddr().String()); got != a.Addr() {
			return fmt.Errorf("the connection comes from %s, want %s", got, a.Addr())
		}
		return nil
	})
}

// A lab that comes up at a scale of 0 has no latency, and keeps the unscaled latencies.
func TestZeroScaleRemovesLatency(t *testing.T) {
	c := config(t, "zero")
	c.Scale = 0
	l := mustUp(t, c)
	if k := l.Links()[0]; k.AB.Latency != 0 || k.BA.Latency != 0 || l.Factor() != 0 {
		t.Errorf("at scale 0: link %s has latencies %v and %v, factor %g", k.ID, k.AB.Latency, k.BA.Latency, l.Factor())
	}
	if err := l.Scale(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if got := l.Links()[0].AB.Latency; got != 2*time.Millisecond {
		t.Errorf("at scale 2: a link of 1 ms has %v", got)
	}
}

func TestNodesReachNeighbours(t *testing.T) {
	l := mustUp(t, config(t, "reach"))
	for _, to := range []string{"n0", "n1", "n2"} {
		if err := reach(t, l, "n0", to); err != nil {
			t.Errorf("n0 does not reach %s: %v", to, err)
		}
	}
	if out, err := shell(t, l, "n0", "getent hosts n2; hostname"); err != nil || !strings.Contains(out, "10.77.0.3") ||
		!strings.HasSuffix(out, "n0") {
		t.Errorf("names: %v\n%s", err, out)
	}
	if out, err := shell(t, l, "n0", "ip route show default"); err != nil || out != "" {
		t.Errorf("default route: %v\n%s", err, out)
	}
}

// Only packets of the nodes cross a link, and none that the kernel sends on its own.
func TestKernelSendsNothingOnLinks(t *testing.T) { onEngines(t, linksAreSilent) }

func linksAreSilent(t *testing.T, engine string) {
	c := config(t, "silent")
	c.Engine = engine
	l := mustUp(t, c)
	if err := reach(t, l, "n0", "n1"); err != nil {
		t.Fatal(err)
	}
	stats, err := l.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stats {
		if quiet := s.AB.Packets+s.BA.Packets == 0; quiet != (s.ID != "n0~n1") {
			t.Errorf("link %s carried %+v", s.ID, s)
		}
	}
}
