package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"skerry/test/testkit"
)

func TestParseMounts(t *testing.T) {
	tests := map[string]struct {
		mounts string
		v1     map[string]string
		v2     string
	}{
		"version 2": {
			mounts: "25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			v1:     map[string]string{}, v2: "/sys/fs/cgroup",
		},
		"version 1, controllers that share a mount": {
			mounts: "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:11 - cgroup cgroup rw,cpu,cpuacct\n" +
				"31 25 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n",
			v1: map[string]string{"cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct"},
		},
		"none": {mounts: "21 1 0:19 / /proc rw - proc proc rw\nnonsense\n", v1: map[string]string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseMounts(strings.NewReader(tt.mounts))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.v1, got.v1); diff != "" || got.v2 != tt.v2 {
				t.Errorf("version 2 at %q, want %q; version 1:\n%s", got.v2, tt.v2, diff)
			}
		})
	}
}

// fakeTree is a machine with version 2 only, in plain files: a real kernel has each controller in one version only.
func fakeTree(t *testing.T) (*Group, func(name string) string) {
	t.Helper()
	mount := t.TempDir()
	g := (&Tree{v1: map[string]string{}, v2: mount}).Group("lab/node")
	if err := g.Create(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cpu.max", "cpu.weight", "memory.max", "memory.swap.max", "io.stat"} {
		if err := os.WriteFile(filepath.Join(mount, root, "lab/node", name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return g, func(name string) string {
		text, err := os.ReadFile(filepath.Join(mount, root, "lab/node", name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

func TestVersion2Limits(t *testing.T) {
	g, read := fakeTree(t)
	for _, tt := range []struct {
		cores float64
		want  string
	}{{0.5, "5000 10000"}, {2, "20000 10000"}, {0.01, "1000 100000"}} {
		if err := g.LimitCPU(tt.cores); err != nil {
			t.Fatal(err)
		}
		if got := read("cpu.max"); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%g cores: cpu.max %q, want %q", tt.cores, got, tt.want)
		}
	}
	if err := g.SetCPUWeight(20); err != nil {
		t.Fatal(err)
	}
	if got := read("cpu.weight"); got != "2000" { // the default is 100
		t.Errorf("20 times the weight: cpu.weight %q, want 2000", got)
	}
	if err := g.LimitMemory(1 << 20); err != nil {
		t.Fatal(err)
	}
	if most, swap := read("memory.max"), read("memory.swap.max"); most != "1048576" || swap != "0" {
		t.Errorf("memory.max %q, memory.swap.max %q", most, swap)
	}
}

func TestVersion2Usage(t *testing.T) {
	g, _ := fakeTree(t)
	dir := g.dirs()[0]
	for name, text := range map[string]string{
		"cpu.stat":    "usage_usec 1500000\nuser_usec 900000\nsystem_usec 600000\nthrottled_usec 250000\n",
		"memory.stat": "anon 4096\nfile 8192\n",
		"io.stat":     "254:0 rbytes=10 wbytes=20 rios=1 wios=1\n8:0 rbytes=1 wbytes=2\n",
		"io.pressure": "some avg10=11.77 avg60=4.49 avg300=1.62 total=37018209\nfull avg10=11.59 avg60=4.25 avg300=1.42 total=30964678\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := g.Usage()
	want := Usage{CPU: 1500 * time.Millisecond, User: 900 * time.Millisecond, System: 600 * time.Millisecond, HasCPU: true,
		Throttled: 250 * time.Millisecond,
		Memory:    4096, HasMemory: true, Read: 11, Wrote: 22, HasIO: true, DiskWait: 37018209 * time.Microsecond, HasDiskWait: true}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// The last lab removes Skerry's own directory while another one is created.
func TestCreateWhileOthersRemove(t *testing.T) {
	tree := &Tree{v1: map[string]string{}, v2: t.TempDir()}
	var labs errgroup.Group
	for lab := range 4 {
		g := tree.Group(strconv.Itoa(lab))
		labs.Go(func() error {
			for range 500 {
				if err := errors.Join(g.Create(), g.Remove()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := labs.Wait(); err != nil {
		t.Error(err)
	}
}

func TestMissingController(t *testing.T) {
	g := (&Tree{v1: map[string]string{}, v2: t.TempDir()}).Group("lab")
	if err := g.Create(); err != nil {
		t.Fatal(err)
	}
	if err := g.LimitCPU(1); !errors.Is(err, ErrNoController) {
		t.Errorf("LimitCPU: %v, want ErrNoController", err)
	}
	if err := g.SetCPUWeight(2); !errors.Is(err, ErrNoController) {
		t.Errorf("WeighCPU: %v, want ErrNoController", err)
	}
	if u, err := g.Usage(); err != nil || u != (Usage{}) {
		t.Errorf("usage %+v, %v; want none", u, err)
	}
}

func TestRealGroups(t *testing.T) {
	testkit.Need(t, testkit.Root)
	tree, err := Open()
	if err != nil {
		testkit.Lacks(t, testkit.Cgroups, err)
	}
	lab := tree.Group("cgroup-test-" + strconv.Itoa(os.Getpid()))
	g := tree.Group(lab.path + "/node")
	if err := g.Create(); errors.Is(err, ErrNone) {
		testkit.Lacks(t, testkit.Cgroups, err)
	} else if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := g.Join(pid); err != nil {
		t.Fatal(err)
	}
	if got, err := lab.Processes(); err != nil || !slices.Equal(got, []int{pid}) {
		t.Errorf("processes %v, %v; want %d", got, err, pid)
	}
	if err := lab.Remove(); err == nil {
		t.Error("removed a group with a process")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the process exited before it was killed")
	}
	if err := lab.Remove(); err != nil {
		t.Error(err)
	}
	if left := lab.existingDirs(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := lab.Remove(); err != nil {
		t.Errorf("removing the group again: %v", err)
	}
}
