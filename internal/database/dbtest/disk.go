package dbtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/load"
	"skerry/internal/testkit"
	"skerry/internal/ycsb"
)

const (
	// rowBytes is about what one of YCSB's rows takes.
	rowBytes = 1000
	// tooMuch is how many times the disks' size is loaded.
	tooMuch = 3
	// giveUp ends a load of which nothing is acknowledged any more.
	giveUp = 10 * time.Second
)

// testDiskFull loads more than the nodes' disks hold: the load ends with an error, and
// the cluster can be stopped.
func (s *suite) testDiskFull(t *testing.T) {
	if s.DiskFull == 0 {
		t.Skip("nothing is written to disks, or nobody said how small they may be")
	}
	testkit.Need(t, testkit.Root)
	s.hosts = s.newHosts(t)
	for _, h := range s.hosts[:s.Nodes] {
		if err := unix.Mount("tmpfs", h.Dir(), "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", s.DiskFull)); err != nil {
			t.Fatalf("mounting a small disk: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(h.Dir(), unix.MNT_DETACH); err != nil {
				t.Errorf("unmounting a small disk: %v", err)
			}
		})
	}
	cluster := s.start(t)
	ctx, cancel := s.bounded(t)
	defer cancel()
	p, _ := ycsb.Builtin("a")
	w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{"recordcount": fmt.Sprint(tooMuch * int64(s.Nodes) * s.DiskFull / rowBytes)}))
	if err != nil {
		t.Fatal(err)
	}
	spec := load.Spec{Phase: load.PhaseLoad, Workload: w, Threads: workers, Seed: 1, Timeout: giveUp / 2, GiveUp: giveUp}
	r, err := load.Run(ctx, spec, s.opener(cluster), nil)
	if !errors.Is(err, load.ErrIncomplete) {
		t.Errorf("%d rows were acknowledged on disks of %d bytes: %v", r.OK, s.DiskFull, err)
	}
	t.Logf("the load ended: %v", err)
	if err := cluster.Err(); err != nil {
		t.Logf("the cluster: %v", err)
	}
	if err := cluster.Stop(ctx); err != nil {
		t.Errorf("stopping it: %v", err)
	}
	s.nothingLeft(t)
}
