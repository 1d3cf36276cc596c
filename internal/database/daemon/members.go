package daemon

import (
	"slices"
	"sync"

	"skerry/internal/database"
)

// Member is a cluster's part on one node.
type Member interface {
	comparable
	// Node is the node's name.
	Node() string
}

// Members are those of a cluster, in the order in which they became members, halted ones
// too. The zero value has none; it must not be copied.
type Members[M Member] struct {
	mu  sync.Mutex
	all []M

	changing database.Changing // held while one joins, leaves, halts or is revived
}

// Hold is the member on a node, which nobody else changes until release is called: neither
// it nor the list of all. It is refused with ErrBusy while another change is under way, and
// with ErrNotMember.
func (l *Members[M]) Hold(node string) (m M, release func(), err error) {
	var none M
	if err := l.changing.Begin(); err != nil {
		return none, nil, err
	}
	if m = l.On(node); m == none {
		l.changing.End()
		return none, nil, database.ErrNotMember
	}
	return m, l.changing.End, nil
}

// Vacant holds the list for a node that is to join. It is refused with ErrBusy while another
// change is under way, and with ErrMember.
func (l *Members[M]) Vacant(node string) (release func(), err error) {
	var none M
	if err := l.changing.Begin(); err != nil {
		return nil, err
	}
	if l.On(node) != none {
		l.changing.End()
		return nil, database.ErrMember
	}
	return l.changing.End, nil
}

// Add takes a member in.
func (l *Members[M]) Add(m M) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, m)
}

// Drop forgets a member; one that is none is no error.
func (l *Members[M]) Drop(m M) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(o M) bool { return o == m })
}

// All are the members at this moment.
func (l *Members[M]) All() []M {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// On is the member on a node, the zero M where there is none.
func (l *Members[M]) On(node string) (m M) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.all {
		if o.Node() == node {
			return o
		}
	}
	return m
}
