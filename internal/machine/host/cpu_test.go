package host

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/kernel/cgroup"
)

// The kernel's counters show whether the new quota throttled the process.
func TestChangedQuotaThrottles(t *testing.T) {
	n := newNode(t, func(s *Spec) { s.CPU = 2 })
	needGroup(t, n)
	if err := n.LimitCPU(0.2); err != nil {
		t.Fatal(err)
	}
	output(t, n, Command{}, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
	used, throttled, err := n.Used()
	if err != nil || used <= 0 || throttled < used/2 {
		t.Errorf("used %v and was throttled for %v, %v", used, throttled, err)
	}
	u, err := n.Usage()
	if err != nil || u.User+u.System > 2*u.CPU || u.User+u.System <= 0 {
		t.Errorf("user %v and system %v of %v, %v", u.User, u.System, u.CPU, err)
	}
}

func TestQuotasOfAnySizeAreAccepted(t *testing.T) {
	n := newNode(t, nil)
	needGroup(t, n)
	for _, cores := range []float64{0.01, 0.0253, 0.0333333, 0.05, 0.099999, 0.1, 1, 1.7, 64, 0.011} {
		if err := n.LimitCPU(cores); err != nil {
			t.Errorf("%v cores: %v", cores, err)
		}
	}
}

func TestQuotaNeedsControlGroup(t *testing.T) {
	n := newNode(t, func(s *Spec) { s.Group = nil })
	if err := n.LimitCPU(1); !errors.Is(err, ErrNoGroup) {
		t.Error(err)
	}
}

// Two nodes compete for one core; the kernel's counters give their shares.
func TestWeight(t *testing.T) {
	server := newNode(t, nil)
	needGroup(t, server)
	client := newNode(t, func(s *Spec) {
		tree, err := cgroup.Open()
		if err != nil {
			t.Fatal(err)
		}
		s.Weight, s.Group = 20, tree.Group(s.Tag+"/client")
	})
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !mine.IsSet(core) {
		core++
	}
	spin := fmt.Sprintf("exec taskset -c %d sh -c 'while :; do :; done'", core)
	var spinning []Process
	for _, n := range []*Node{server, client} {
		p, err := n.Start(t.Context(), Command{Name: "spin", Path: "/bin/sh", Args: []string{"-c", spin}})
		if err != nil {
			t.Fatal(err)
		}
		spinning = append(spinning, p)
	}
	used := func(n *Node) time.Duration {
		cpu, _, err := n.Used()
		if err != nil {
			t.Fatal(err)
		}
		return cpu
	}
	from := used(server)
	for start := used(client); used(client)-start < 300*time.Millisecond; {
		select {
		case <-spinning[0].Done():
			t.Fatal("server: ", spinning[0].Err())
		case <-spinning[1].Done():
			t.Fatal("client: ", spinning[1].Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	// A twentieth, plus the start of the second process.
	if got := used(server) - from; got > 100*time.Millisecond {
		t.Errorf("the server got %v while the client with 20 times its weight got 300 ms", got)
	}
	for _, p := range spinning {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		<-p.Done()
	}
}
