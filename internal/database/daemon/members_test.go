package daemon_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database/daemon"
)

type part struct{ node string }

func (p *part) Node() string { return p.node }

func TestMembers(t *testing.T) {
	var l daemon.Members[*part]
	a, b, other := &part{"a"}, &part{"b"}, &part{"b"}
	l.Add(a)
	l.Add(b)
	if l.On("b") != b || l.On("c") != nil {
		t.Errorf("on b is %v, on c %v", l.On("b"), l.On("c"))
	}
	before := l.All()
	l.Drop(other) // of the same node, and none of these
	l.Drop(a)
	if l.On("a") != nil {
		t.Error("a is there yet")
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
