package consensus_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skerry/systems/consensus"
	"skerry/systems/consensus/wal"
)

// fullDisk is a real directory whose writes fail with ENOSPC while full is set.
type fullDisk struct {
	wal.FS
	full *atomic.Bool
}

func (d fullDisk) Create(name string) (wal.File, error) {
	if d.full.Load() {
		return nil, syscall.ENOSPC
	}
	f, err := d.FS.Create(name)
	return fullFile{f, d.full}, err
}

func (d fullDisk) Open(name string) (wal.File, error) {
	f, err := d.FS.Open(name)
	return fullFile{f, d.full}, err
}

type fullFile struct {
	wal.File
	full *atomic.Bool
}

func (f fullFile) WriteAt(b []byte, at int64) (int, error) {
	if f.full.Load() {
		n, _ := f.File.WriteAt(b[:len(b)/2], at)
		return n, syscall.ENOSPC
	}
	return f.File.WriteAt(b, at)
}

func TestDiskFull(t *testing.T) {
	var full [3]atomic.Bool
	g := newGroup(t, three, func(cfg *consensus.Config) {
		disk := &full[cfg.Self.ID-1]
		*cfg = cfg.WithFS(func(dir string) (wal.FS, error) {
			fs, err := wal.Directory(dir)
			return fullDisk{fs, disk}, err
		})
	})
	lead := g.leader()
	g.propose(lead, 0, 50)
	full[lead.cfg.Self.ID-1].Store(true)
	// The leader detects the full disk at its next write and transfers the leadership.
	g.propose(g.other(lead), 50, 50)
	g.awaitStatus(lead, "a follower with a storage error", func(s consensus.Status) bool {
		return s.State == "follower" && s.StorageError != ""
	})
	if _, err := lead.node.Entries(soon(t), 1, 1000); err != nil {
		t.Errorf("reading from a member with a full disk: %v", err)
	}
	if _, err := lead.node.ReadIndex(soon(t)); err != nil {
		t.Errorf("read index of a member with a full disk: %v", err)
	}
	full[lead.cfg.Self.ID-1].Store(false)
	g.same(100)
	lead.close()
	lead.start()
	g.same(100)
}

func TestAllDisksFull(t *testing.T) {
	var full atomic.Bool
	g := newGroup(t, three[:1], func(cfg *consensus.Config) {
		*cfg = cfg.WithFS(func(dir string) (wal.FS, error) {
			fs, err := wal.Directory(dir)
			return fullDisk{fs, &full}, err
		})
	})
	m := g.members[0]
	g.propose(m, 0, 10)
	full.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := m.node.Propose(ctx, []byte("value 10")); !errors.Is(err, consensus.ErrInDoubt) {
		t.Errorf("the proposal whose write fails: %v", err)
	}
	g.awaitStatus(m, "reporting a storage error", func(s consensus.Status) bool { return s.StorageError != "" })
	_, err := m.node.Propose(soon(t), []byte("value 11"))
	if !errors.Is(err, consensus.ErrNotDone) || !errors.Is(err, consensus.ErrStorage) {
		t.Errorf("a proposal while the disk is full: %v", err)
	}
	full.Store(false)
	m.waitFor(11)
	g.propose(m, 12, 5)
	g.same(16)
}

// TestCorruptLog corrupts the middle of a log.
func TestCorruptLog(t *testing.T) {
	g := newGroup(t, three[:1], nil)
	m := g.members[0]
	for i := range 20 {
		g.propose(m, i, 1)
	}
	m.close()
	names, _ := filepath.Glob(filepath.Join(m.cfg.Dir, "*.wal"))
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	b[strings.Index(string(b), "value 7")] ^= 1
	if err := os.WriteFile(names[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := consensus.Open(soon(t), m.cfg); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("opening a damaged log: %v", err)
	}
}

// childDir is the environment variable that turns the test binary into a member that proposes until it is killed.
const childDir = "CONSENSUS_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var alone = consensus.Member{ID: 1, Name: "alone", Addr: "127.0.0.1:0", Role: consensus.Voter}

func child(dir string) error {
	n, err := consensus.Open(context.Background(), consensus.Config{Cluster: "test", Self: alone, Members: []consensus.Member{alone}, Dir: dir})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		index, err := n.Propose(context.Background(), fmt.Appendf(nil, "%d", i))
		if err != nil {
			return err
		}
		fmt.Printf("%d %d\n", index, i)
	}
}

// TestKill9 kills a member with SIGKILL while it appends entries.
func TestKill9(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acked := map[uint64]string{}
	r := bufio.NewScanner(out)
	for len(acked) < 200 && r.Scan() {
		var index uint64
		var value string
		if _, err := fmt.Sscan(r.Text(), &index, &value); err != nil {
			t.Fatalf("unexpected output of the member: %q", r.Text())
		}
		acked[index] = value
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	n, err := consensus.Open(soon(t), consensus.Config{Cluster: "test", Self: alone, Members: []consensus.Member{alone}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	last, err := n.Propose(soon(t), []byte("end"))
	if err != nil {
		t.Fatal(err)
	}
	var found []uint64
	for from := uint64(1); from <= last; {
		entries, err := n.Entries(soon(t), from, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if want, ok := acked[e.Index]; ok {
				found = append(found, e.Index)
				if string(e.Data) != want {
					t.Errorf("entry %d is %q, but %q was acknowledged", e.Index, e.Data, want)
				}
			}
			from = e.Index + 1
		}
	}
	if len(found) != len(acked) || !slices.IsSorted(found) {
		t.Errorf("found %d of %d acknowledged entries", len(found), len(acked))
	}
}
