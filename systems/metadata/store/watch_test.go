package store_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
	"skerry/systems/metadata/store"
)

// at applies each record with its own index, and with times from a clock that jumps.
type at struct {
	t     *testing.T
	state *store.State
}

func (a at) run(entry uint64, c metadata.Command) metadata.Result {
	a.t.Helper()
	if c.Op != metadata.Touch {
		c.Time = int64(entry%3) * int64(time.Hour)
	}
	results, ok := a.state.Apply(entry, metadata.AppendBatch(nil, []metadata.Command{c})).([]metadata.Result)
	if !ok || len(results) != 1 {
		a.t.Fatalf("%v: %v", c, results)
	}
	return results[0]
}

func (a at) lines(entry uint64, lines ...string) {
	a.t.Helper()
	for _, line := range lines {
		c, err := metadata.Parse(line)
		if err != nil {
			a.t.Fatal(err)
		}
		if r := a.run(entry, c); r.Err != nil {
			a.t.Fatalf("%s: %v", line, r.Err)
		}
	}
}

func watching(first bool) metadata.Command {
	return metadata.Step{Verb: metadata.Watch, Txn: "t", Lease: 10, First: first}.Command("/d", "")
}

// reopened returns the state restored from a snapshot.
func (a at) reopened() at {
	a.t.Helper()
	s, err := a.state.Snapshot()
	if err != nil {
		a.t.Fatal(err)
	}
	defer s.Close()
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		a.t.Fatal(err)
	}
	next := at{a.t, store.NewState()}
	if err := next.state.Restore(&b); err != nil {
		a.t.Fatal(err)
	}
	return next
}

func resolving(entry uint64) metadata.Command {
	return metadata.Step{Verb: metadata.Resolve, Txn: "t", Entry: entry}.Command("/", "")
}

// TestLease locks a path while the clock jumps back and forth by hours. The lock ends when a caller that saw the
// lease of the last step expire resolves it, and not earlier. Another replica, restored from a snapshot, behaves
// alike.
func TestLease(t *testing.T) {
	a := at{t, store.NewState()}
	a.lines(1, "mkdir /d")
	prepare := metadata.Step{Verb: metadata.Prepare, Txn: "t", Lease: 10, First: true}.Command("/d", "")
	for _, entry := range []uint64{2, 5} {
		if r := a.run(entry, prepare); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	for _, one := range []at{a.reopened(), a} {
		for i, old := range []uint64{2, 1, 4, 6, metadata.AnyEntry} {
			if r := one.run(6+uint64(i), resolving(old)); string(r.Data) != metadata.Pending {
				t.Errorf("the lease of entry %d has expired: %+v", old, r)
			}
		}
		rmdir := metadata.Command{Op: metadata.Rmdir, Path: "/d", MaxDepth: -1}
		if r := one.run(11, rmdir); !errors.Is(r.Err, metadata.ErrLocked) {
			t.Errorf("changing a locked path: %v", r.Err)
		}
		if r := one.run(12, resolving(5)); string(r.Data) != metadata.Aborted {
			t.Errorf("resolving after the lease of entry 5: %+v", r)
		}
		if r := one.run(13, rmdir); r.Err != nil {
			t.Errorf("changing the path after the lease: %v", r.Err)
		}
	}
}

func TestWatch(t *testing.T) {
	a := at{t, store.NewState()}
	a.lines(1, "mkdir /d", "mkdir /e", "mkdir /d/old", "create /d/x", "create /e/x")
	if r := a.run(2, watching(false)); !errors.Is(r.Err, metadata.ErrAborted) {
		t.Errorf("before the watch began: %v", r.Err)
	}
	if r := a.run(2, watching(true)); r.Err != nil || len(r.Entries) != 1 || r.Entries[0].Size != 2 {
		t.Fatalf("first result of the watch: %+v", r)
	}
	a.lines(3, "mkdir -p /d/a/b", "mv /d/old /d/a/new", "mv /e/x /d/a/b/x", "chmod 700 /d",
		"touch -t 1970-01-01T00:00:00Z /d/x", "mkdir /e/y", "rmdir /e/y")
	a = a.reopened()
	want := map[string]bool{"/d": false, "/d/a": false, "/d/a/b": false, "/d/old": true, "/d/a/new": true, "/d/a/b/x": true, "/d/x": false}
	if diff := cmp.Diff(want, metadata.ParseChanges(a.run(4, watching(false)).Data)); diff != "" {
		t.Error(diff)
	}
	if r := a.run(13, watching(false)); r.Err != nil || len(r.Data) != 0 {
		t.Errorf("watching without changes: %+v", r)
	}
	for _, other := range []uint64{1, 4, 14, metadata.AnyEntry} {
		if r := a.run(14, resolving(other)); string(r.Data) != metadata.Pending {
			t.Errorf("while the lease is valid: %+v", r)
		}
	}
	a.lines(15, "mv /d /moved")
	if r := a.run(16, watching(false)); !errors.Is(r.Err, metadata.ErrAborted) {
		t.Errorf("watching a moved directory: %v", r.Err)
	}
	a.lines(17, "mkdir /d")
	a.run(18, watching(true))
	if r := a.run(29, resolving(18)); string(r.Data) != metadata.Aborted {
		t.Errorf("resolving after the lease of the last step: %+v", r)
	}
	if r := a.run(29, watching(false)); !errors.Is(r.Err, metadata.ErrAborted) {
		t.Errorf("watching after the lease: %v", r.Err)
	}
	a.run(30, watching(true))
	a.run(31, metadata.Step{Verb: metadata.Abort, Txn: "t"}.Command("/", ""))
	if r := a.run(32, watching(false)); !errors.Is(r.Err, metadata.ErrAborted) {
		t.Errorf("watching an abandoned transaction: %v", r.Err)
	}
}
