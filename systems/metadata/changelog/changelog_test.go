package changelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"skerry/systems/consensus/wal"
	"skerry/systems/metadata/protocol"
	"skerry/test/waltest"
)

// lines is a StateMachine that collects records.
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

func open(t testing.TB, dir string, o Options) (*Journal, *lines, protocol.LogRecovery) {
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
	log, header, ends := written(t)
	for size := range len(log) + 1 {
		dir := t.TempDir()
		put(t, firstSegment(dir), log[:size])
		begin, whole := 0, 0
		for whole < len(ends) && ends[whole] <= size {
			whole++
		}
		if whole > 0 {
			begin = ends[whole-1]
		} else if size >= header {
			begin = header
		}
		torn := len(bytes.TrimRight(log[min(padded(begin), size):size], "\x00"))
		j, l, r := open(t, dir, Options{SegmentBytes: 4096})
		if !slices.Equal(l.list, records(6)[:whole]) || r.Torn != int64(torn) {
			t.Fatalf("cut at %d: %q, %+v", size, l.list, r)
		}
		appendAll(t, j, "more")
		closed(t, j)
		j, l, r = open(t, dir, Options{SegmentBytes: 4096})
		if want := append(records(6)[:whole:whole], "more"); !slices.Equal(l.list, want) || r.Torn != 0 {
			t.Fatalf("cut at %d, reopened: %q, %+v", size, l.list, r)
		}
		closed(t, j)
	}
}

// TestDamageAnywhere flips a bit of every byte. Damage in the last group is reported as a torn write; earlier
// damage is refused, except in the zeros between records, which carry no data.
func TestDamageAnywhere(t *testing.T) {
	log, header, ends := written(t)
	for at := range ends[len(ends)-1] {
		dir := t.TempDir()
		damaged := bytes.Clone(log)
		damaged[at] ^= 0x10
		put(t, firstSegment(dir), damaged)
		l := &lines{}
		j, r, err := Open(dir, l, Options{SegmentBytes: 4096})
		end, next := header, padded(header) // of the last record that begins before at, and of its zeros
		for _, e := range ends {
			if next <= at {
				end, next = e, padded(e)
			}
		}
		want, torn := records(6), false
		switch {
		case at >= end:
		case at >= padded(ends[len(ends)-2]):
			want, torn = records(5), true
		default:
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("byte %d: %q, %+v, error %v", at, l.list, r, err)
			}
			continue
		}
		if err != nil || !slices.Equal(l.list, want) || (r.Torn > 0) != torn {
			t.Fatalf("byte %d of %d: %q, %+v, error %v", at, len(log), l.list, r, err)
		}
		closed(t, j)
	}
}

// written returns a log of six records, and the ends of its header and of each record, without the zeros that fill it up.
func written(t *testing.T) (log []byte, header int, ends []int) {
	dir := t.TempDir()
	j, _, _ := open(t, dir, Options{SegmentBytes: 4096})
	sizes := []int64{j.Status().LogBytes}
	for _, r := range records(6) {
		appendAll(t, j, r)
		sizes = append(sizes, j.Status().LogBytes)
	}
	closed(t, j)
	log, err := os.ReadFile(firstSegment(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes {
		ends = append(ends, len(bytes.TrimRight(log[:size], "\x00")))
	}
	return log[:sizes[6]], ends[0], ends[1:]
}

// padded returns where the record after the one that ends at end begins.
func padded(end int) int { return (end + 7) &^ 7 }

func firstSegment(dir string) string { return filepath.Join(dir, "0000000000000001.wal") }

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
	bounded := func(s protocol.JournalStatus) bool {
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
	if snapshots, err := listSnapshots(dir); err != nil || len(snapshots) != 1 {
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
	snapshots, err := listSnapshots(dir)
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
	segments, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(segments) < 3 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	if err := os.Remove(segments[1]); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, &lines{}, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if want := slices.Delete(segments, 1, 2); err != nil || !slices.Equal(left, want) {
		t.Errorf("segments after the refusal: %v, %v, want %v", left, err, want)
	}
}

func TestDirectoryLock(t *testing.T) {
	dir := t.TempDir()
	j, _, _ := open(t, dir, Options{})
	if _, _, err := Open(dir, &lines{}, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	closed(t, j)
	put(t, filepath.Join(dir, versionFile), []byte("3\n"))
	if _, _, err := Open(dir, &lines{}, Options{}); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer version: %v", err)
	}
	put(t, filepath.Join(dir, versionFile), []byte("x"))
	if _, _, err := Open(dir, &lines{}, Options{}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("no version: %v", err)
	}
}

// faulty is a disk with injected faults. Files of one log share it.
type faulty struct {
	wal.FS
	write, truncate error
	gate            chan struct{} // Sync waits for it if not nil
}

// options returns options for a journal on the disk. The disk is a directory, unless disk.FS is set.
func (d *faulty) options() Options {
	return Options{fs: func(dir string) (wal.FS, error) {
		if d.FS != nil {
			return d, nil
		}
		fs, err := wal.Directory(dir)
		d.FS = fs
		return d, err
	}}
}

func (d *faulty) Create(name string) (wal.File, error) {
	f, err := d.FS.Create(name)
	return &faultyFile{f, d}, err
}

func (d *faulty) Open(name string) (wal.File, error) {
	f, err := d.FS.Open(name)
	return &faultyFile{f, d}, err
}

type faultyFile struct {
	wal.File
	disk *faulty
}

func (f *faultyFile) WriteAt(b []byte, at int64) (int, error) {
	if f.disk.write != nil {
		n, err := f.File.WriteAt(b[:len(b)/2], at)
		return n, errors.Join(err, f.disk.write)
	}
	return f.File.WriteAt(b, at)
}

func (f *faultyFile) Sync() error {
	if f.disk.gate != nil {
		<-f.disk.gate
	}
	return f.File.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	return errors.Join(f.File.Truncate(size), f.disk.truncate)
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	disk := &faulty{}
	j, l, _ := open(t, dir, disk.options())
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
		t.Errorf("after a disk failure: %v", err)
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
		disk, gate := &faulty{}, make(chan struct{})
		j, l, _ := open(t, t.TempDir(), disk.options())
		disk.gate = gate
		var wg sync.WaitGroup
		for _, r := range records(50) {
			wg.Go(func() { appendAll(t, j, r) })
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := j.Append(ctx, []byte("impatient")); !errors.Is(err, ErrUnknown) {
			t.Errorf("canceled append: %v", err)
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

// TestCrashes appends through power failures, full disks and failed syncs. Afterwards, all acknowledged records exist in
// order, no refused record exists, and records with unknown outcome may exist.
func TestCrashes(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) { crashes(t, seed) })
	}
}

func crashes(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	dir, disk := t.TempDir(), waltest.New(rng)
	files := &faulty{FS: disk}
	o := files.options()
	o.SegmentBytes, o.SnapshotBytes = 2000, 3000
	var sure []string      // acknowledged
	var maybe, no []string // appended after that, with unknown outcome; refused
	for life := range 5 {
		disk.SyncError, disk.Capacity, files.write = nil, 0, nil
		j, l, _ := open(t, dir, o)
		for i, want := range sure {
			if i >= len(l.list) || l.list[i] != want {
				t.Fatalf("seed %d: record %d of %d is not %q", seed, i, len(l.list), want)
			}
		}
		for _, got := range l.list[len(sure):] {
			if !slices.Contains(maybe, got) {
				t.Fatalf("seed %d: unexpected record %q; unknown: %q, refused: %q", seed, got, maybe, no)
			}
		}
		sure, maybe = slices.Clone(l.list), nil
		for round := range 40 {
			synctest.Wait() // the disk is for one goroutine
			files.write = nil
			switch rng.IntN(12) {
			case 0:
				files.write = unix.ENOSPC
			case 1:
				disk.Capacity = disk.Bytes() + int64(rng.IntN(300))
			case 2:
				disk.Capacity = 0
			case 3:
				if round > 20 {
					disk.SyncError = unix.EIO
				}
			}
			var group sync.WaitGroup
			results := make([]error, 1+rng.IntN(6))
			name := func(i int) string { return fmt.Sprintf("life %d round %d record %d", life, round, i) }
			before := len(l.list)
			for i := range results {
				group.Go(func() { _, results[i] = j.Append(context.Background(), []byte(name(i))) })
			}
			group.Wait()
			synctest.Wait()
			sure = append(sure, l.list[before:]...)
			for i, err := range results {
				switch {
				case err == nil && !slices.Contains(l.list[before:], name(i)):
					t.Fatalf("seed %d: %q was acknowledged but not applied", seed, name(i))
				case errors.Is(err, ErrUnknown):
					maybe = append(maybe, name(i))
				case err != nil:
					no = append(no, name(i))
				}
			}
		}
		closed(t, j)
		disk.Crash()
	}
	if len(no) == 0 {
		t.Fatalf("seed %d: no record was refused", seed)
	}
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte{})
	dir := f.TempDir()
	j, _, _ := open(f, dir, Options{})
	appendAll(f, j, "one", "two")
	size := j.Status().LogBytes
	closed(f, j)
	b, err := os.ReadFile(firstSegment(dir))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b[:size])
	f.Add(b[:size-10])
	f.Fuzz(func(t *testing.T, log []byte) {
		dir := t.TempDir()
		put(t, firstSegment(dir), log)
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
