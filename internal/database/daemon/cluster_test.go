package daemon_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
)

type part struct{ node string }

func (p *part) Name() string { return p.node }

func TestMembers(t *testing.T) {
	var l daemon.MemberList[*part]
	a, b, other := &part{"a"}, &part{"b"}, &part{"b"}
	l.Add(a)
	l.Add(b)
	if l.On("b") != b || l.On("c") != nil {
		t.Errorf("member on b is %v, on c %v", l.On("b"), l.On("c"))
	}
	before := l.All()
	l.Drop(other) // another member of the same node
	l.Drop(a)
	if l.On("a") != nil {
		t.Error("a is still a member")
	}
	names := func(all []*part) (names []string) {
		for _, p := range all {
			names = append(names, p.node)
		}
		return names
	}
	if diff := cmp.Diff([][]string{{"a", "b"}, {"b"}}, [][]string{names(before), names(l.All())}); diff != "" {
		t.Error(diff)
	}
}

// One change at a time, and none of a node that has no member, or has one.
func TestHold(t *testing.T) {
	var l daemon.MemberList[*part]
	a := &part{"a"}
	l.Add(a)
	busy := func(with string) {
		t.Helper()
		_, _, held := l.Hold("a")
		_, vacant := l.Vacant("b")
		if !errors.Is(held, database.ErrBusy) || !errors.Is(vacant, database.ErrBusy) {
			t.Errorf("while %s: %v, %v", with, held, vacant)
		}
	}
	m, release, err := l.Hold("a")
	if m != a || err != nil {
		t.Fatal(m, err)
	}
	busy("a is reserved")
	release()
	if release, err = l.Vacant("b"); err != nil {
		t.Fatal(err)
	}
	busy("b joins")
	release()
	if _, _, err := l.Hold("b"); !errors.Is(err, database.ErrNotMember) {
		t.Errorf("reserving a node without a member: %v", err)
	}
	if _, err := l.Vacant("a"); !errors.Is(err, database.ErrMember) {
		t.Errorf("joining a member: %v", err)
	}
	if _, release, err = l.Hold("a"); err != nil {
		t.Errorf("after refused changes: %v", err)
	} else {
		release()
	}
}
