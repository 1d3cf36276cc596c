package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"skerry/systems/metadata"
	"skerry/systems/metadata/changelog"
	"skerry/systems/metadata/store"
	"skerry/test/testkit"
)

func open(t testing.TB, dir string, o changelog.Options) (*store.Store, *changelog.Journal) {
	t.Helper()
	state := store.NewState()
	j, _, err := changelog.Open(dir, state, o)
	if err != nil {
		t.Fatal(err)
	}
	return store.New(state, j), j
}

func run(t testing.TB, s *store.Store, lines ...string) []metadata.Result {
	t.Helper()
	var commands []metadata.Command
	for _, line := range lines {
		c, err := metadata.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, c)
	}
	return s.Do(context.Background(), commands)
}

func closed(t testing.TB, j *changelog.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestBatch(t *testing.T) {
	s, j := open(t, t.TempDir(), changelog.Options{})
	defer closed(t, j)
	results := run(t, s, "mkdir /a", "mkdir /a/b", "mkdir /a", "ls /a", "rmdir /a", "rmdir /a/b", "rmdir /a", "ls /")
	for i, want := range []error{nil, nil, metadata.ErrExists, nil, metadata.ErrNotEmpty, nil, nil, nil} {
		if !errors.Is(results[i].Err, want) {
			t.Errorf("%d: %v, want %v", i, results[i].Err, want)
		}
	}
	if len(results[3].Entries) != 1 || len(results[7].Entries) != 0 {
		t.Errorf("listed %v, %v", results[3].Entries, results[7].Entries)
	}
	if before := j.Status().Index; before != 2 {
		t.Errorf("%d records for two runs of changes", before)
	}
	for line, want := range map[string]error{
		"mkdir /": metadata.ErrExists, "rmdir /x": metadata.ErrNotFound, "mkdir /x/y": metadata.ErrNotFound, "mv /x /y": metadata.ErrNotFound,
		"chmod 7 /x": metadata.ErrNotFound, "touch /x": metadata.ErrNotFound,
	} {
		if r := run(t, s, line); !errors.Is(r[0].Err, want) {
			t.Errorf("%s: %v", line, r[0].Err)
		}
	}
	if after := j.Status().Index; after != 2 {
		t.Errorf("changes that fail immediately became durable: %d records", after-2)
	}
}

// TestReopenAfterChaos changes a tree from many clients during snapshots, and reopens it: nothing is lost.
func TestReopenAfterChaos(t *testing.T) {
	dir := t.TempDir()
	o := changelog.Options{SegmentBytes: 8 << 10, SnapshotBytes: 16 << 10}
	s, j := open(t, dir, o)
	var wg sync.WaitGroup
	for client := range 8 {
		r := rand.New(rand.NewPCG(uint64(client), 3))
		wg.Go(func() {
			for range 150 {
				a, b := fmt.Sprintf("/%d/%d", r.IntN(4), r.IntN(6)), fmt.Sprintf("/%d/%d", r.IntN(4), r.IntN(6))
				run(t, s, "mkdir -p "+a, "write "+a+"/f text", "mv "+a+" "+b, "rm -r "+fmt.Sprintf("/%d/%d", r.IntN(4), r.IntN(6)))
			}
		})
	}
	wg.Wait()
	want, counts := run(t, s, "find -n 10000 /"), s.Tree().Counts()
	closed(t, j)
	if j.Status().SnapshotIndex == 0 {
		t.Error("no snapshot was taken")
	}
	s, j = open(t, dir, o)
	defer closed(t, j)
	if diff := cmp.Diff(want, run(t, s, "find -n 10000 /")); diff != "" {
		t.Error(diff)
	}
	if got := s.Tree().Counts(); got.Files != counts.Files || got.Directories != counts.Directories {
		t.Errorf("counts %+v, want %+v", got, counts)
	}
}

// TestFullDisk fills the disk: writes are refused, reads continue, and writes succeed when there is space again.
func TestFullDisk(t *testing.T) {
	testkit.Need(t, testkit.Root)
	dir := t.TempDir()
	if err := unix.Mount("skerry-test", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s, j := open(t, filepath.Join(dir, "data"), changelog.Options{})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 100<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	made := 0
	var refused error
	for i := 0; refused == nil && i < 10_000; i++ {
		if refused = run(t, s, fmt.Sprintf("write /%d %0200d", i, i))[0].Err; refused == nil {
			made++
		}
	}
	if metadata.HTTPStatus(refused) != 503 || !errors.Is(refused, unix.ENOSPC) {
		t.Errorf("on a full disk: %v", refused)
	}
	if r := run(t, s, "ls -n 10000 /"); r[0].Err != nil || len(r[0].Entries) != made {
		t.Errorf("%d entries, %v; want %d", len(r[0].Entries), r[0].Err, made)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if r := run(t, s, "mkdir /room"); r[0].Err != nil {
		t.Errorf("a write with free space: %v", r[0].Err)
	}
	closed(t, j)
	s, j = open(t, filepath.Join(dir, "data"), changelog.Options{})
	defer closed(t, j)
	if c := s.Tree().Counts(); c.Files != int64(made) || c.Directories != 2 {
		t.Errorf("reopened with %+v, want %d files", c, made)
	}
}

func BenchmarkMkdir(b *testing.B) {
	s, j := open(b, b.TempDir(), changelog.Options{})
	defer closed(b, j)
	b.SetParallelism(32)
	var id sync.Mutex
	n := 0
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id.Lock()
			n++
			i := n
			id.Unlock()
			s.Do(context.Background(), []metadata.Command{{Op: metadata.Mkdir, Path: fmt.Sprintf("/%d", i), Mode: 0o755}})
		}
	})
}
