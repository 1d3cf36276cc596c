package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/testing/protocmp"

	"skerry/systems/consensus/wal"
	"skerry/test/waltest"
)

var options = wal.Options{Cluster: "c", ID: 1, Segment: 4096, Cache: 1024}

func entries(from, to, term uint64) []*raftpb.Entry {
	var out []*raftpb.Entry
	for i := from; i <= to; i++ {
		out = append(out, &raftpb.Entry{Index: new(i), Term: new(term), Type: raftpb.EntryNormal.Enum(), Data: []byte(fmt.Sprintf("entry %d of term %d", i, term))})
	}
	return out
}

func hard(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}

func open(t *testing.T, fs wal.FS) *wal.Log {
	t.Helper()
	l, err := wal.Open(fs, options)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, l *wal.Log) []*raftpb.Entry {
	t.Helper()
	first, _ := l.FirstIndex()
	last, _ := l.LastIndex()
	if first > last {
		return nil
	}
	got, err := l.Entries(first, last+1, 1<<30)
	must(t, err)
	return got
}

func directory(t *testing.T, path string) wal.FS {
	t.Helper()
	fs, err := wal.Directory(path)
	must(t, err)
	return fs
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	l := open(t, directory(t, dir))
	if !l.Empty() {
		t.Error("a new log is not empty")
	}
	must(t, l.Reset(1, 1, wal.Conf{Data: []byte(`{"n":3}`)}))
	must(t, l.Append(hard(1, 2, 1), entries(2, 300, 1)))
	must(t, l.Append(hard(3, 0, 200), entries(250, 400, 3)))
	must(t, l.SetConf(wal.Conf{Index: 260, Data: []byte(`{"n":4}`)}))
	must(t, l.Sync())
	want := append(entries(2, 249, 1), entries(250, 400, 3)...)
	if diff := cmp.Diff(want, contents(t, l), protocmp.Transform()); diff != "" {
		t.Errorf("before: %s", diff)
	}
	must(t, l.Close())

	l = open(t, directory(t, dir))
	defer l.Close()
	if diff := cmp.Diff(want, contents(t, l), protocmp.Transform()); diff != "" {
		t.Errorf("after: %s", diff)
	}
	if diff := cmp.Diff(hard(3, 0, 200), l.HardState(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	confs := []wal.Conf{{Index: 1, Data: []byte(`{"n":3}`)}, {Index: 260, Data: []byte(`{"n":4}`)}}
	if diff := cmp.Diff(confs, l.Confs()); diff != "" {
		t.Error(diff)
	}
	for index, want := range map[uint64]uint64{1: 1, 249: 1, 250: 3, 400: 3} {
		if got, err := l.Term(index); err != nil || got != want {
			t.Errorf("term of entry %d: got %d, %v, want %d", index, got, err, want)
		}
	}
}

func TestCompact(t *testing.T) {
	dir := t.TempDir()
	l := open(t, directory(t, dir))
	must(t, l.Reset(1, 1, wal.Conf{Data: []byte(`1`)}))
	for i := uint64(2); i < 1000; i++ {
		must(t, l.Append(nil, entries(i, i, 1)))
	}
	must(t, l.SetConf(wal.Conf{Index: 400, Data: []byte(`2`)}))
	must(t, l.Sync())
	must(t, l.Compact(500))
	first, _ := l.FirstIndex()
	if first > 501 || first < 400 {
		t.Errorf("the first entry is %d after a compaction up to 500", first)
	}
	if _, err := l.Entries(first-1, first+1, 1000); !errors.Is(err, raft.ErrCompacted) {
		t.Errorf("reading a compacted entry: %v", err)
	}
	if confs := l.Confs(); len(confs) != 1 || string(confs[0].Data) != "2" {
		t.Errorf("memberships %v", confs)
	}
	over := l.Excess(10000, time.Time{})
	if over <= 500 || over >= 999 {
		t.Errorf("compaction index for 10000 bytes is %d", over)
	}
	must(t, l.Close())
	l = open(t, directory(t, dir))
	defer l.Close()
	if diff := cmp.Diff(entries(first, 999, 1), contents(t, l), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	must(t, l.Compact(over))
	if l.Usage().Bytes > 10000 {
		t.Errorf("the log still has %d bytes", l.Usage().Bytes)
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	l := open(t, directory(t, dir))
	defer l.Close()
	if _, err := wal.Directory(dir); !errors.Is(err, wal.ErrLocked) {
		t.Errorf("opening a directory in use: %v", err)
	}
}

func TestOwner(t *testing.T) {
	dir := t.TempDir()
	must(t, open(t, directory(t, dir)).Close())
	for _, other := range []wal.Options{{Cluster: "d", ID: 1, Segment: 4096}, {Cluster: "c", ID: 2, Segment: 4096}} {
		if _, err := wal.Open(directory(t, dir), other); !errors.Is(err, wal.ErrOwner) {
			t.Errorf("opening as member %d of %s: %v", other.ID, other.Cluster, err)
		}
	}
}

func TestNewerVersion(t *testing.T) {
	dir := t.TempDir()
	must(t, open(t, directory(t, dir)).Close())
	name := segments(t, dir)[0]
	b, err := os.ReadFile(name)
	must(t, err)
	must(t, os.WriteFile(name, wal.WithVersion(b, 2), 0o600))
	if _, err := wal.Open(directory(t, dir), options); !errors.Is(err, wal.ErrVersion) {
		t.Errorf("opening a newer log: %v", err)
	}
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	must(t, err)
	return names
}

// TestGap opens a log with a missing segment. The older segments stay until the caller compacts the log, so that the
// caller can refuse the log first.
func TestGap(t *testing.T) {
	dir := t.TempDir()
	l := open(t, directory(t, dir))
	must(t, l.Reset(1, 1, wal.Conf{Data: []byte(`1`)}))
	for i := uint64(2); i < 400; i++ {
		must(t, l.Append(nil, entries(i, i, 1)))
	}
	must(t, l.Sync())
	must(t, l.Close())
	all := segments(t, dir)
	if len(all) < 4 {
		t.Fatalf("only %d segments", len(all))
	}
	must(t, os.Remove(all[len(all)-2]))
	left := append(all[:len(all)-2:len(all)-2], all[len(all)-1])

	newest := left[len(left)-1]
	sound, err := os.ReadFile(newest)
	must(t, err)
	for name, damaged := range map[string][]byte{"a bad header": append([]byte{sound[0] ^ 1}, sound[1:]...), "no header": {}} {
		must(t, os.WriteFile(newest, damaged, 0o600))
		if _, err := wal.Open(directory(t, dir), options); !errors.Is(err, wal.ErrCorrupt) {
			t.Errorf("%s after a gap: %v", name, err)
		}
		if diff := cmp.Diff(left, segments(t, dir)); diff != "" {
			t.Errorf("%s after a gap: segments after the refusal: %s", name, diff)
		}
	}
	must(t, os.WriteFile(newest, sound, 0o600))

	l = open(t, directory(t, dir))
	if first, _ := l.FirstIndex(); first < 300 {
		t.Errorf("the log begins with entry %d, before the gap", first)
	}
	must(t, l.Append(nil, entries(400, 400, 1)))
	must(t, l.Sync())
	if diff := cmp.Diff(left, segments(t, dir)); diff != "" {
		t.Errorf("segments before a compaction: %s", diff)
	}
	must(t, l.Compact(1))
	if diff := cmp.Diff(left[len(left)-1:], segments(t, dir)); diff != "" {
		t.Errorf("segments after a compaction: %s", diff)
	}
	must(t, l.Close())
}

// TestDamage flips one bit at many positions of a log with several durable writes. The log must be rejected
// unless the bit is in the last write.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	l := open(t, directory(t, dir))
	must(t, l.Reset(1, 1, wal.Conf{Data: []byte(`1`)}))
	var lastWrite int64
	for i := uint64(2); i < 40; i++ {
		lastWrite = l.Usage().Bytes
		must(t, l.Append(nil, entries(i, i, 1)))
		must(t, l.Sync())
	}
	must(t, l.Close())
	name := segments(t, dir)[0]
	sound, err := os.ReadFile(name)
	must(t, err)
	for at := int64(0); at < lastWrite; at += 7 {
		b := append([]byte(nil), sound...)
		b[at] ^= 4
		must(t, os.WriteFile(name, b, 0o600))
		l, err := wal.Open(directory(t, dir), options)
		if err == nil {
			// Padding and the zeros of a header's length carry no data.
			if diff := cmp.Diff(entries(2, 39, 1), contents(t, l), protocmp.Transform()); diff != "" {
				t.Fatalf("bit flipped at %d of %d: entries were lost: %s", at, lastWrite, diff)
			}
			l.Close()
			continue
		}
		if !errors.Is(err, wal.ErrCorrupt) {
			t.Errorf("bit flipped at %d: %v", at, err)
		}
	}
}

func TestDiskFull(t *testing.T) {
	fs := waltest.New(rand.New(rand.NewPCG(1, 1)))
	l := open(t, fs)
	must(t, l.Reset(1, 1, wal.Conf{Data: []byte(`1`)}))
	fs.Capacity = 20000
	i := uint64(2)
	for ; ; i++ {
		err := l.Append(nil, entries(i, i, 1))
		if err == nil {
			err = l.Sync()
		}
		if err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			break
		}
	}
	if diff := cmp.Diff(entries(2, i-1, 1), contents(t, l), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	fs.Capacity = 0
	must(t, l.Append(nil, entries(i, i+50, 1)))
	must(t, l.Sync())
	must(t, l.Close())
	if diff := cmp.Diff(entries(2, i+50, 1), contents(t, open(t, fs)), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

// halfDisk writes only the first bytes of a write and then fails.
type halfDisk struct {
	wal.FS
	most int
}

func (d *halfDisk) Create(name string) (wal.File, error) {
	f, err := d.FS.Create(name)
	return halfFile{f, d}, err
}

type halfFile struct {
	wal.File
	disk *halfDisk
}

func (f halfFile) WriteAt(b []byte, at int64) (int, error) {
	if n := f.disk.most; n > 0 {
		f.File.WriteAt(b[:n], at)
		return n, syscall.ENOSPC
	}
	return f.File.WriteAt(b, at)
}

// TestRefusedEntriesAreRemoved fails a write after two of three entries. Neither the reopened log nor a log with
// another entry of the same size at their position may contain them.
func TestRefusedEntriesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	disk := &halfDisk{FS: directory(t, dir)}
	l := open(t, disk)
	must(t, l.Append(nil, entries(1, 3, 1)))
	disk.most = 160
	if err := l.Append(nil, entries(4, 6, 2)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	disk.most = 0
	must(t, l.Append(nil, entries(4, 4, 3)))
	must(t, l.Close())
	if diff := cmp.Diff(append(entries(1, 3, 1), entries(4, 4, 3)...), contents(t, open(t, directory(t, dir))), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestSyncFails(t *testing.T) {
	fs := waltest.New(rand.New(rand.NewPCG(1, 1)))
	l := open(t, fs)
	must(t, l.Append(nil, entries(1, 1, 1)))
	fs.SyncError = syscall.EIO
	if err := l.Sync(); !errors.Is(err, wal.ErrSync) {
		t.Fatalf("sync: %v", err)
	}
	fs.SyncError = nil
	if err := l.Append(nil, entries(2, 2, 1)); !errors.Is(err, wal.ErrSync) {
		t.Errorf("writing after a failed sync: %v", err)
	}
}

// TestCrashes runs random operations, crashes, and compares the log with a model: all synced entries and a
// prefix of the others.
func TestCrashes(t *testing.T) {
	for seed := range uint64(200) {
		if msg := crashes(seed); msg != "" {
			t.Fatalf("seed %d: %s", seed, msg)
		}
	}
}

// TestLiar checks that the schedules of TestCrashes detect a disk that reports syncs it did not do.
func TestLiar(t *testing.T) {
	for seed := range uint64(200) {
		if msg := crashesOn(seed, true); strings.Contains(msg, "lost") || strings.Contains(msg, "damaged") {
			return
		}
	}
	t.Error("no schedule found the lying disk")
}

func crashes(seed uint64) string { return crashesOn(seed, false) }

func crashesOn(seed uint64, lies bool) string {
	rng := rand.New(rand.NewPCG(seed, 7))
	fs := waltest.New(rng)
	l, err := wal.Open(fs, options)
	if err != nil {
		return err.Error()
	}
	fs.Lies = lies
	model := []uint64{1} // terms by index; 0 is the position before the first entry
	if err := l.Reset(0, 1, wal.Conf{Data: []byte(`1`)}); err != nil {
		return err.Error()
	}
	durable, floor, term := append([]uint64(nil), model...), 0, uint64(1)
	for range 60 {
		switch rng.IntN(12) {
		case 0, 1, 2, 3, 4, 5:
			from := len(model)
			if rng.IntN(6) == 0 && from > floor+1 {
				from = floor + 1 + rng.IntN(from-floor-1)
				term++
			}
			n := 1 + rng.IntN(40)
			if err := l.Append(hard(term, 0, 0), entries(uint64(from), uint64(from+n-1), term)); err != nil {
				return err.Error()
			}
			if from < len(durable) {
				// The replaced durable entries may or may not be gone.
				durable = durable[:from]
			}
			model = model[:from]
			for range n {
				model = append(model, term)
			}
		case 6, 7, 8:
			if err := l.Sync(); err != nil {
				return err.Error()
			}
			durable = append(durable[:0], model...)
		case 9:
			if err := l.Compact(uint64(rng.IntN(len(durable)))); err != nil {
				return err.Error()
			}
			first, _ := l.FirstIndex()
			floor = int(first) - 1
		default:
			fs.Crash()
			if l, err = wal.Open(fs, options); err != nil {
				return err.Error()
			}
			first, _ := l.FirstIndex()
			last, _ := l.LastIndex()
			if int(last) < len(durable)-1 || int(first)-1 > floor {
				return fmt.Sprintf("log is %d-%d; lost some of %d-%d", first, last, floor+1, len(durable)-1)
			}
			floor = int(first) - 1
			kept := model[:0:0]
			for i := range int(last) + 1 {
				if i < floor {
					kept = append(kept, 0)
					continue
				}
				got, err := l.Term(uint64(i))
				if err != nil {
					return err.Error()
				}
				if i < len(durable) && durable[i] != got {
					return fmt.Sprintf("entry %d of term %d is lost: got an entry of term %d", i, durable[i], got)
				}
				kept = append(kept, got)
				if i > floor {
					e, err := l.Entries(uint64(i), uint64(i)+1, 1)
					if err != nil || string(e[0].Data) != fmt.Sprintf("entry %d of term %d", i, got) {
						return fmt.Sprintf("entry %d: %v %v", i, e, err)
					}
				}
			}
			model = kept
			durable = append(durable[:0], model...)
			term++
		}
	}
	return ""
}
