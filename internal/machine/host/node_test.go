package host

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/kernel/netns"
	"skerry/internal/kernel/procfs"
	"skerry/test/testkit"
)

// TestMain lets a test start this program as something else.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("SKERRY_TEST_EXEC") != "":
		execAsAsked()
		return
	case os.Getenv("SKERRY_TEST_USE") != "":
		useAsAsked(os.Getenv("SKERRY_TEST_USE"))
		return
	}
	os.Exit(m.Run())
}

// newNode creates a node for the test. change may modify its spec.
func newNode(t testing.TB, change func(*Spec)) *Node {
	t.Helper()
	testkit.Need(t, testkit.Root)
	dir := t.TempDir()
	s := Spec{
		Name: "Pune", Addr: "10.77.0.1", Dir: filepath.Join(dir, "data"), Netns: filepath.Join(dir, "ns"),
		Hosts: filepath.Join(dir, "hosts"), Tag: "host-test-" + strconv.Itoa(os.Getpid()),
	}
	for _, err := range []error{
		os.Chmod(filepath.Dir(dir), 0o755), // other users may pass
		os.Mkdir(s.Dir, 0o755),
		os.WriteFile(s.Hosts, []byte("127.0.0.1 localhost\n10.77.0.1 Pune\n10.77.0.2 Sydney\n"), 0o644),
		netns.OnNewThread(func() error {
			if err := netns.Create(s.Netns); err != nil {
				return err
			}
			return netlink.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: 1, Name: "lo"}})
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	made := s.Netns // change may set another
	t.Cleanup(func() {
		if err := unix.Unmount(made, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if tree, err := cgroup.Open(); err == nil {
		s.Group = tree.Group(s.Tag + "/" + s.Name)
		t.Cleanup(func() {
			if err := tree.Group(s.Tag).Remove(); err != nil {
				t.Error(err)
			}
		})
	}
	if change != nil {
		change(&s)
	}
	n := NewNode(s)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// needGroup skips a test of limits if newNode found no control groups.
func needGroup(t *testing.T, n *Node) {
	t.Helper()
	if n.spec.Group == nil {
		testkit.Lacks(t, testkit.Cgroups, ErrNoGroup)
	}
}

// output runs a shell script on a node and returns its output.
func output(t *testing.T, n *Node, c Command, script string) string {
	t.Helper()
	var out bytes.Buffer
	c.Name, c.Path, c.Args, c.Stdout, c.Stderr = "script", "/bin/sh", []string{"-c", script}, &out, &out
	p, err := n.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if err := p.Err(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, &out)
	}
	return strings.TrimSpace(out.String())
}

func TestProcessIsOnTheNode(t *testing.T) {
	n := newNode(t, nil)
	ns, err := netns.ID(n.Netns())
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		"readlink /proc/self/ns/net":       fmt.Sprintf("net:[%d]", ns),
		"hostname":                         "Pune",
		"getent hosts Sydney":              "10.77.0.2       Sydney",
		"pwd":                              n.Dir(),
		"echo $HOME $SKERRY_LAB":           n.Dir() + " " + n.spec.Tag,
		"env | grep -c GOROOT || true":     "0",
		"ps -o pid= -o sid= -p $$ | wc -l": "1",
	} {
		if got := output(t, n, Command{}, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	if n.spec.Group == nil {
		return
	}
	got := output(t, n, Command{}, "cat /proc/self/cgroup")
	if !strings.Contains(got, "/skerry/"+n.spec.Tag+"/Pune") {
		t.Errorf("its control groups are\n%s", got)
	}
}

func TestMachineKeepsItsNames(t *testing.T) {
	n := newNode(t, nil)
	before, err := os.ReadFile(hostsFile)
	if err != nil {
		t.Fatal(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	output(t, n, Command{}, "true")
	after, err := os.ReadFile(hostsFile)
	if diff := cmp.Diff(string(before), string(after)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if now, _ := os.Hostname(); now != name {
		t.Errorf("the machine's name went from %s to %s", name, now)
	}
}

func TestHiddenMountsAreNotHeld(t *testing.T) {
	var dir string
	n := newNode(t, func(s *Spec) {
		dir = filepath.Join(filepath.Dir(s.Dir), "mounts")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		hidden := filepath.Join(dir, "ns")
		if err := netns.OnNewThread(func() error { return netns.Create(hidden) }); err != nil {
			t.Fatal(err)
		}
		s.Hide, s.Netns = dir, hidden // the directory is hidden, too, as in labs
	})
	if got := output(t, n, Command{}, "grep -c "+dir+" /proc/self/mountinfo || true"); got != "0" {
		t.Errorf("a process of the node has %s mounts of %s", got, dir)
	}
}

func TestUser(t *testing.T) {
	n := newNode(t, nil)
	if got := output(t, n, Command{UID: 65534, GID: 65534}, "id -u; id -g"); got != "65534\n65534" {
		t.Errorf("ran as %q", got)
	}
}

func TestOpenFiles(t *testing.T) {
	n := newNode(t, nil)
	hard, err := strconv.Atoi(output(t, n, Command{}, "ulimit -Hn"))
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []uint32{0, 65534} {
		if got, want := output(t, n, Command{UID: uid, GID: uid}, "ulimit -n"), strconv.Itoa(min(hard, descriptors)); got != want {
			t.Errorf("user %d may open %s files, want %s", uid, got, want)
		}
	}
}

func TestStartFails(t *testing.T) {
	n := newNode(t, nil)
	for name, c := range map[string]Command{
		"no program": {Path: "/nowhere/redis-server"},
		"no dir":     {Path: "/bin/true", Dir: "/nowhere"},
		"no log dir": {Path: "/bin/true", Log: "/nowhere/log"},
	} {
		if p, err := n.Start(t.Context(), c); err == nil {
			t.Errorf("%s: started as %d", name, p.PID())
		}
	}
}

func TestBeganComesFirstAndDecides(t *testing.T) {
	var seen []procfs.Process
	refuse := errors.New("not this one")
	n := newNode(t, func(s *Spec) {
		s.Began = func(p procfs.Process, _ string) error {
			seen = append(seen, p)
			if len(seen) == 2 {
				return refuse
			}
			return nil
		}
	})
	output(t, n, Command{}, "touch ran; true")
	mark := filepath.Join(n.Dir(), "ran")
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	_, err := n.Start(t.Context(), Command{Path: "/usr/bin/touch", Args: []string{mark}})
	if !errors.Is(err, refuse) {
		t.Errorf("error %v, want %v", err, refuse)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the refused program ran")
	}
	if len(seen) != 2 || seen[1].Alive() {
		t.Errorf("found processes %v; want the refused one removed", seen)
	}
}

func TestExitCodesLogAndTail(t *testing.T) {
	n := newNode(t, nil)
	log := filepath.Join(n.Dir(), "log")
	p, err := n.Start(t.Context(), Command{Name: "three", Path: "/bin/sh", Args: []string{"-c", "echo one; echo two >&2; exit 3"}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	var exit *exec.ExitError
	if !errors.As(p.Err(), &exit) || exit.ExitCode() != 3 {
		t.Errorf("exited with %v, want 3", p.Err())
	}
	if got := p.Tail(1); got != "two" {
		t.Errorf("last line %q", got)
	}
	if got := p.Tail(9); got != "one\ntwo" {
		t.Errorf("last lines %q", got)
	}
}

func TestStop(t *testing.T) {
	n := newNode(t, nil)
	start := func(script string) Process {
		ready := filepath.Join(n.Dir(), "ready")
		os.Remove(ready)
		p, err := n.Start(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", script}})
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(ready); err == nil {
				return p
			}
			select {
			case <-p.Done():
				t.Fatal(p.Err())
			default:
			}
		}
	}
	polite := start("trap 'touch stopped; exit 0' TERM; touch ready; while :; do sleep 0.01; done")
	if err := polite.Stop(t.Context(), time.Minute); err != nil || polite.Err() != nil {
		t.Errorf("Stop: %v, ended with %v", err, polite.Err())
	}
	if _, err := os.Stat(filepath.Join(n.Dir(), "stopped")); err != nil {
		t.Error("the program got no SIGTERM")
	}
	deaf := start("trap '' TERM; sleep 1000 & echo $! >child; touch ready; wait")
	if err := deaf.Stop(t.Context(), time.Millisecond); err != nil || deaf.Err() == nil {
		t.Errorf("Stop: %v, ended with %v; want killed", err, deaf.Err())
	}
	text, err := os.ReadFile(filepath.Join(n.Dir(), "child"))
	if err != nil {
		t.Fatal(err)
	}
	child, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	for s, err := procfs.ReadStat(child); err == nil && s.State != 'Z'; s, err = procfs.ReadStat(child) {
	}
}

func TestClose(t *testing.T) {
	n := newNode(t, nil)
	p, err := n.Start(t.Context(), Command{Path: "/bin/sleep", Args: []string{"1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-p.Done():
	default:
		t.Error("the process is still running after Close")
	}
	if _, err := n.Start(t.Context(), Command{Path: "/bin/true"}); !errors.Is(err, ErrClosed) {
		t.Errorf("Start after Close: %v", err)
	}
}

func TestDo(t *testing.T) {
	n := newNode(t, nil)
	var l net.Listener
	err := n.Do(func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("the machine can connect to a listener on the node")
	}
	if err := n.Do(func() error {
		c, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			c.Close()
		}
		return err
	}); err != nil {
		t.Errorf("the node cannot connect to itself: %v", err)
	}
}

// The kernel's counters, not a clock, show whether the quota throttled the process.
func TestCPUQuota(t *testing.T) {
	n := newNode(t, func(s *Spec) { s.CPU = 0.2 })
	needGroup(t, n)
	output(t, n, Command{}, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	u, err := n.Usage()
	if err != nil {
		t.Fatal(err)
	}
	// With a fifth of a core it waits for four fifths of the time. Half is enough to detect the quota.
	if u.CPU <= 0 || u.Throttled < u.CPU/2 {
		t.Errorf("used %v and was throttled for %v", u.CPU, u.Throttled)
	}
}

func TestMemoryLimit(t *testing.T) {
	n := newNode(t, func(s *Spec) { s.Memory = 32 << 20 })
	needGroup(t, n)
	var out bytes.Buffer
	p, err := n.Start(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", "head -c 200m /dev/zero | tail -c 150m | wc -c"}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if strings.TrimSpace(out.String()) == strconv.Itoa(150<<20) {
		t.Error("the process got 150 MB with a limit of 32 MiB")
	}
}

func TestUsageWithoutControlGroups(t *testing.T) {
	n := newNode(t, func(s *Spec) { s.Group = nil })
	output(t, n, Command{}, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; head -c 1m /dev/zero >zeros; sync zeros")
	u, err := n.Usage()
	if err != nil || u.CPU <= 0 || u.Memory != 0 {
		t.Errorf("usage %+v, %v; want some CPU and no memory after the end", u, err)
	}
	p, err := n.Start(t.Context(), Command{Path: "/bin/sleep", Args: []string{"1000"}})
	if err != nil {
		t.Fatal(err)
	}
	// The kernel counts pages with a delay: a new process has none.
	for u.Memory == 0 && p.Err() == nil {
		if u, err = n.Usage(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
}

// Waits of a node are counted with and without control groups: two loops on one CPU wait for each other.
func TestWaitsForProcessors(t *testing.T) {
	for name, change := range map[string]func(*Spec){"a control group": func(*Spec) {}, "none": func(s *Spec) { s.Group = nil }} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, change)
			loop := "taskset -p 1 $$ >/dev/null; while :; do :; done"
			var all []Process
			for range 2 {
				p, err := n.Start(t.Context(), Command{Path: "/bin/sh", Args: []string{"-c", loop}})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, p)
			}
			var u Usage
			for u.Waits.Processor < 50*time.Millisecond {
				var err error
				if u, err = n.Usage(); err != nil {
					t.Fatal(err)
				}
				if !u.Waits.ProcessorKnown {
					testkit.Lacks(t, testkit.Delays, errors.New("the kernel does not count the time that threads wait for a processor"))
				}
				time.Sleep(5 * time.Millisecond)
			}
			for _, p := range all {
				if err := p.Kill(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
