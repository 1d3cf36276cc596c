package changelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// lines is a Machine that collects records.
type lines struct {
	list []string
}

func (l *lines) Apply(index uint64, record []byte) any {
	l.list = append(l.list, string(record))
	return index
}

func (l *lines) Restore(r io.Reader) error {
	b, err := io.ReadAll(r)
	l.list = nil
	for line := range strings.SplitSeq(string(b), "\n") {
		if line != "" {
			l.list = append(l.list, line)
		}
	}
	return err
}

func (l *lines) Snapshot() (Snapshot, error) { return still(slices.Clone(l.list)), nil }

type still []string

func (s still) Write(w io.Writer) error {
	for _, line := range s {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func (s still) Close() {}

func open(t testing.TB, dir string, o Options) (*Journal, *lines, Recovery) {
	t.Helper()
	l := &lines{}
	j, r, err := Open(dir, l, o)
	if err != nil {
		t.Fatal(err)
	}
	return j, l, r
}

func appendAll(t testing.TB, j *Journal, records ...string) {
	t.Helper()
	for _, r := range records {
		if _, err := j.Append(context.Background(), []byte(r)); err != nil {
			t.Fatal(err)
		}
	}
}

func closed(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func records(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("record ", i+1)
	}
	return list
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	want := records(9)
	for i := range 3 {
		j, l, r := open(t, dir, Options{})
		if !slices.Equal(l.list, want[:3*i]) || r.Records != uint64(3*i) || r.Torn != 0 {
			t.Fatalf("opened with %q, %+v", l.list, r)
		}
		appendAll(t, j, want[3*i:3*i+3]...)
		if got := j.Status().Index; got != int64(3*i+3) {
			t.Errorf("index %d", got)
		}
		closed(t, j)
		if _, err := j.Append(context.Background(), nil); !errors.Is(err, ErrClosed) {
			t.Errorf("append after close: %v", err)
		}
	}
}

// TestTruncatedAnywhere truncates the log at every byte, as a kill can: all complete groups survive, and the
// journal accepts new records.
func TestTruncatedAnywhere(t *testing.T) {
	log, ends := written(t)
	for size := range len(log) + 1 {
		dir := t.TempDir()
		put(t, segmentPath(dir, 1), log[:size])
		whole := 0
		for whole < len(ends) && ends[whole] <= size {
			whole++
		}
		j, l, r := open(t, dir, Options{})
		torn := size
		if whole > 0 {
			torn -= ends[whole-1]
		}
		if !slices.Equal(l.list, records(6)[:whole]) || r.Torn != int64(torn) {
			t.Fatalf("cut at %d: %q, %+v", size, l.list, r)
		}
		appendAll(t, j, "more")
		closed(t, j)
		j, l, r = open(t, dir, Options{})
		if want := append(records(6)[:whole:whole], "more"); !slices.Equal(l.list, want) || r.Torn != 0 {
			t.Fatalf("cut at %d, opened again: %q, %+v", size, l.list, r)
		}
		closed(t, j)
	}
}

// TestDamageAnywhere flips a bit of every byte. Damage in the last group is reported as a torn write; earlier
// damage is refused.
func TestDamageAnywhere(t *testing.T) {
	log, ends := written(t)
	for at := range log {
		dir := t.TempDir()
		damaged := bytes.Clone(log)
		damaged[at] ^= 0x10
		put(t, segmentPath(dir, 1), damaged)
		l := &lines{}
		j, r, err := Open(dir, l, Options{})
		if at < ends[len(ends)-2] {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("byte %d: %q, %+v, error %v", at, l.list, r, err)
			}
			continue
		}
		if err != nil || !slices.Equal(l.list, records(5)) || r.Torn == 0 {
			t.Fatalf("byte %d of the last group: %q, %+v, error %v", at, l.list, r, err)
		}
		closed(t, j)
	}
}

// written returns a log of six records and the end of each group.
func written(t *testing.T) (log []byte, ends []int) {
	dir := t.TempDir()
	j, _, _ := open(t, dir, Options{})
	for _, r := range records(6) {
		appendAll(t, j, r)
		ends = append(ends, int(j.Status().LogBytes))
	}
	closed(t, j)
	log, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	return log, ends
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDiskUsageBounded writes much more than the journal may keep. Covered segments and old snapshots are deleted.
func TestDiskUsageBounded(t *testing.T) {
	dir := t.TempDir()
	o := Options{SegmentBytes: 1000, SnapshotBytes: 4000}
	j, _, _ := open(t, dir, o)
	want := records(3000)
	var wg sync.WaitGroup
	for _, part := range slices.Collect(slices.Chunk(want, 300)) {
		wg.Go(func() { appendAll(t, j, part...) })
	}
	wg.Wait()
	// Records written during a snapshot belong to the next one.
	bounded := func(s Status) bool {
		return s.SnapshotIndex > 0 && s.LogBytes <= 4*max(o.SnapshotBytes, s.SnapshotBytes)
	}
	for deadline := time.Now().Add(time.Minute); !bounded(j.Status()); {
		if time.Now().After(deadline) {
			t.Fatalf("status %+v", j.Status())
		}
		more := fmt.Sprintf("more %d", len(want))
		appendAll(t, j, more)
		want = append(want, more)
	}
	closed(t, j)
	if snapshots, err := listFiles(dir, snapshotPrefix); err != nil || len(snapshots) != 1 {
		t.Errorf("snapshots %v, %v", snapshots, err)
	}
	j, l, r := open(t, dir, o)
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(l.list)); !slices.Equal(got, want) || r.Snapshot == 0 || r.Snapshot+r.Records != uint64(len(want)) {
		t.Errorf("opened with %d records, %+v", len(l.list), r)
	}
	closed(t, j)
	damageSnapshot(t, dir, o)
}

func damageSnapshot(t *testing.T, dir string, o Options) {
	snapshots, err := listFiles(dir, snapshotPrefix)
	if err != nil {
		t.Fatal(err)
	}
	path := snapshots[0].path
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 5, 9, 16, 40, len(content) / 2, len(content) - 1} {
		damaged := bytes.Clone(content)
		damaged[at] ^= 1
		put(t, path, damaged)
		if _, _, err := Open(dir, &lines{}, o); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d of a snapshot: %v", at, err)
		}
		put(t, path, content[:at])
		if _, _, err := Open(dir, &lines{}, o); !errors.Is(err, ErrCorrupt) {
			t.Errorf("a snapshot of %d bytes: %v", at, err)
		}
	}
}

func TestMissingSegment(t *testing.T) {
	dir := t.TempDir()
	j, _, _ := open(t, dir, Options{SegmentBytes: 100})
	appendAll(t, j, records(20)...)
	closed(t, j)
	segments, err := listFiles(dir, segmentPrefix)
	if err != nil || len(segments) < 3 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	if err := os.Remove(segments[1].path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, &lines{}, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v", err)
	}
}

func TestDirectoryLock(t *testing.T) {
	dir := t.TempDir()
	j, _, _ := open(t, dir, Options{})
	if _, _, err := Open(dir, &lines{}, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	closed(t, j)
	put(t, filepath.Join(dir, versionFile), []byte("2\n"))
	if _, _, err := Open(dir, &lines{}, Options{}); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer version: %v", err)
	}
	put(t, filepath.Join(dir, versionFile), []byte("x"))
	if _, _, err := Open(dir, &lines{}, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("no version: %v", err)
	}
}

// faulty is a disk with injected faults.
type faulty struct {
	file
	write, sync, truncate error
	gate                  chan struct{} // Sync waits for it if not nil
}

func (f *faulty) Write(b []byte) (int, error) {
	if f.write != nil {
		n, err := f.file.Write(b[:len(b)/2])
		return n, errors.Join(err, f.write)
	}
	return f.file.Write(b)
}

func (f *faulty) Sync() error {
	if f.gate != nil {
		<-f.gate
	}
	return errors.Join(f.file.Sync(), f.sync)
}

func (f *faulty) Truncate(size int64) error { return errors.Join(f.file.Truncate(size), f.truncate) }

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	disk := &faulty{}
	j, l, _ := open(t, dir, Options{wrap: func(f file) file { disk.file = f; return disk }})
	appendAll(t, j, "one")
	disk.write = unix.ENOSPC
	if _, err := j.Append(context.Background(), []byte("lost")); !errors.Is(err, ErrRefused) || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	disk.write = nil
	appendAll(t, j, "two")
	disk.write, disk.truncate = unix.ENOSPC, unix.EIO
	if _, err := j.Append(context.Background(), []byte("half")); !errors.Is(err, ErrUnknown) || !errors.Is(err, ErrBroken) {
		t.Errorf("on a broken disk: %v", err)
	}
	disk.write, disk.truncate = nil, nil
	if _, err := j.Append(context.Background(), []byte("late")); !errors.Is(err, ErrBroken) {
		t.Errorf("behind a broken disk: %v", err)
	}
	if !slices.Equal(l.list, []string{"one", "two"}) || j.Status().Broken == "" {
		t.Errorf("applied %q, %+v", l.list, j.Status())
	}
	closed(t, j)
	j, l, _ = open(t, dir, Options{})
	if !slices.Equal(l.list, []string{"one", "two"}) {
		t.Errorf("opened with %q", l.list)
	}
	closed(t, j)
}

// TestGroupCommit appends many records during one fsync: the next fsync makes all of them durable.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		j, l, _ := open(t, t.TempDir(), Options{wrap: func(f file) file { return &faulty{file: f, gate: gate} }})
		var wg sync.WaitGroup
		for _, r := range records(50) {
			wg.Go(func() { appendAll(t, j, r) })
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := j.Append(ctx, []byte("impatient")); !errors.Is(err, ErrUnknown) {
			t.Errorf("given up: %v", err)
		}
		if len(l.list) != 0 {
			t.Errorf("%d records applied before they were durable", len(l.list))
		}
		close(gate)
		wg.Wait()
		closed(t, j)
		if len(l.list) != 51 || j.Status().Groups > 3 {
			t.Errorf("%d records in %d groups", len(l.list), j.Status().Groups)
		}
	})
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte{})
	b := addRecord(beginGroup(nil), []byte("one"))
	endGroup(b, 1)
	f.Add(b)
	f.Fuzz(func(t *testing.T, log []byte) {
		dir := t.TempDir()
		put(t, segmentPath(dir, 1), log)
		j, _, err := Open(dir, &lines{}, Options{})
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		appendAll(t, j, "more")
		closed(t, j)
		j, l, r := open(t, dir, Options{})
		if r.Torn != 0 || l.list[len(l.list)-1] != "more" {
			t.Fatalf("opened with %q, %+v", l.list, r)
		}
		closed(t, j)
	})
}
