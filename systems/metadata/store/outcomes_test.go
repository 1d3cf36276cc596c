package store

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"skerry/systems/metadata"
)

// applying applies records with increasing indices to a state.
type applying struct {
	*State
	t  *testing.T
	at uint64
}

func (a *applying) do(c metadata.Command) metadata.Result {
	a.t.Helper()
	a.at++
	results, ok := a.Apply(a.at, metadata.AppendBatch(nil, []metadata.Command{c})).([]metadata.Result)
	if !ok || len(results) != 1 {
		a.t.Fatalf("%s: %v", c, results)
	}
	return results[0]
}

// again restores the state from a snapshot.
func (a *applying) again() {
	a.t.Helper()
	s, err := a.Snapshot()
	if err != nil {
		a.t.Fatal(err)
	}
	defer s.Close()
	var image bytes.Buffer
	if err := s.Write(&image); err != nil {
		a.t.Fatal(err)
	}
	a.State = NewState()
	if err := a.Restore(&image); err != nil {
		a.t.Fatal(err)
	}
}

// TestIdentity logs changes twice, as after a hung replica. The second record has no effect and returns the first
// result, also after a snapshot.
func TestIdentity(t *testing.T) {
	step := func(s metadata.Step, path string) metadata.Command { return s.Command(path, "") }
	prepare := metadata.Step{Verb: metadata.Prepare, Txn: "t", Lease: 1, First: true,
		Commands: []metadata.Command{{Op: metadata.Create, Path: "/x", MaxDepth: -1}}}
	for _, c := range []metadata.Command{
		{Op: metadata.Mkdir, Path: "/a", Mode: 0o755},
		{Op: metadata.Write, Path: "/f", Data: []byte("text"), Exclusive: true},
		{Op: metadata.Move, Path: "/f", To: "/g"},
		{Op: metadata.Remove, Path: "/g"},
		{Op: metadata.Remove, Path: "/missing"},
		step(prepare, "/x"),
		step(metadata.Step{Verb: metadata.Commit, Txn: "t"}, "/"),
		{Op: metadata.Rmdir, Path: "/a"},
	} {
		a := &applying{State: NewState(), t: t}
		for _, before := range []metadata.Command{{Op: metadata.Mkdir, Path: "/a"}, {Op: metadata.Write, Path: "/f"},
			{Op: metadata.Write, Path: "/g"}} {
			if c.Op == metadata.Rmdir && before.Path == "/a" || c.Op == metadata.Move && before.Path == "/f" ||
				c.Op == metadata.Remove && before.Path == "/g" {
				a.do(before)
			}
		}
		if s, err := metadata.ParseStep(c.Data); err == nil && s.Verb == metadata.Commit {
			a.do(step(prepare, "/x"))
		}
		c.Identity = "client/1.0"
		first := a.do(c)
		state := a.Tree().Counts()
		second := a.do(c)
		a.again()
		third := a.do(c)
		same := cmpopts.EquateErrors()
		if diff := cmp.Diff(first, second, same); diff != "" {
			t.Errorf("%s: %s", c, diff)
		}
		if fmt.Sprint(first.Err) != fmt.Sprint(third.Err) || cmp.Diff(first.Entries, third.Entries) != "" {
			t.Errorf("%s: %+v, after a snapshot %+v", c, first, third)
		}
		if diff := cmp.Diff(state, a.Tree().Counts()); diff != "" {
			t.Errorf("%s was done twice: %s", c, diff)
		}
	}
}

// TestForgottenIdentity makes enough changes to forget the first. A change with its identity, or from before it,
// is refused; a later change is made.
func TestForgottenIdentity(t *testing.T) {
	a := &applying{State: NewState(), t: t}
	first := metadata.Command{Op: metadata.Mkdir, Path: "/a", Identity: "first/1.0"}
	if r := a.do(first); r.Err != nil {
		t.Fatal(r.Err)
	}
	forgotten := a.at
	for i := range maxOutcomes {
		a.do(metadata.Command{Op: metadata.Chmod, Path: "/a", Mode: 0o700, Identity: fmt.Sprint("other/", i)})
	}
	a.do(metadata.Command{Op: metadata.Rmdir, Path: "/a"})
	a.again()
	if r := a.do(first); !errors.Is(r.Err, metadata.ErrStale) {
		t.Errorf("repeating a forgotten change: %v", r.Err)
	}
	if r := a.do(metadata.Step{Verb: metadata.Recall, Txn: first.Identity}.Command("/", "")); !errors.Is(r.Err, metadata.ErrStale) {
		t.Errorf("looking up the forgotten change: %+v", r)
	}
	if r := a.do(metadata.Command{Op: metadata.Mkdir, Path: "/b", Identity: "new/1.0", Seen: forgotten}); r.Err != nil {
		t.Errorf("a later change: %v", r.Err)
	}
	if n := len(a.outcomes.order); n > maxOutcomes || len(a.outcomes.outcomes) != n {
		t.Errorf("%d changes are remembered", n)
	}
}

// TestIdentityOfBlockedChange blocks a change by a transaction: blocking is not the change's outcome.
func TestIdentityOfBlockedChange(t *testing.T) {
	a := &applying{State: NewState(), t: t}
	lock := metadata.Step{Verb: metadata.Prepare, Txn: "t", Lease: 1, First: true}
	a.do(lock.Command("/a", ""))
	c := metadata.Command{Op: metadata.Mkdir, Path: "/a", Identity: "client/1.0"}
	if r := a.do(c); !errors.Is(r.Err, metadata.ErrLocked) {
		t.Fatal(r.Err)
	}
	a.do(metadata.Step{Verb: metadata.Abort, Txn: "t"}.Command("/", ""))
	if r := a.do(c); r.Err != nil {
		t.Error(r.Err)
	}
}
