package tree

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skerry/systems/metadata"
)

// maxReadTries is how often a read begins again before it stops all changes of the tree.
const maxReadTries = 100

// step is an edge that a walk came by: the node that it leads to, and its count then.
type step struct {
	node *node
	edge uint32
}

// walk is where a path led.
type walk struct {
	few   [16]step // the steps of most paths: a slice of it would have it on the heap
	n     int      // how many of few there are
	more  []step   // those behind few
	node  *node    // the last that was reached
	state *state   // its state when it was reached
	at    int      // where in the path the first name begins that was not
	err   error    // why the path went no further, nil where it did
}

// walkPath walks a path so that it was whole at one moment: that at which the last state was
// loaded.
func (t *Tree) walkPath(path string, w *walk) {
	for range maxReadTries {
		if t.tryWalk(path, w) {
			return
		}
		t.counts.retries.Add(1)
		runtime.Gosched()
	}
	defer t.moves.lockAll(&t.waits)()
	t.tryWalk(path, w)
}

// tryWalk is look, and tells whether it succeeded.
func (t *Tree) tryWalk(path string, w *walk) bool {
	if !t.descend(path, w) {
		return false
	}
	for i := range w.n {
		if w.few[i].changed() {
			return false
		}
	}
	for _, s := range w.more {
		if s.changed() {
			return false
		}
	}
	return true
}

func (s step) changed() bool { return s.node.edge.Load() != s.edge }

func (w *walk) addStep(s step) {
	if w.n < len(w.few) {
		w.few[w.n] = s
		w.n++
	} else {
		w.more = append(w.more, s)
	}
}

// descend follows a path as far as it leads; it is false where it met a change under way.
func (t *Tree) descend(path string, w *walk) bool {
	w.n, w.more, w.node, w.state, w.err = 0, w.more[:0], t.root, t.root.state.Load(), nil
	for w.at = 1; w.at < len(path); {
		if w.state.moving {
			return false
		}
		if w.err = w.state.checkPassable(path, w.at); w.err != nil {
			return true
		}
		end := len(path)
		if i := strings.IndexByte(path[w.at:], '/'); i >= 0 {
			end = w.at + i
		}
		child := w.state.kids.get(path[w.at:end])
		if child == nil {
			w.err = &metadata.Error{Path: path, Err: metadata.ErrNotFound}
			return true
		}
		t.pause()
		edge := child.edge.Load()
		if edge&1 == 1 {
			return false
		}
		// The edge must have been there when it was counted: the entries still are those, or
		// still have it.
		if s := w.node.state.Load(); s != w.state && (s.moving || s.kids.get(path[w.at:end]) != child) {
			return false
		}
		w.addStep(step{child, edge})
		t.pause()
		w.node, w.state, w.at = child, child.state.Load(), end+1
	}
	return !w.state.moving
}

// checkPassable tells why no path leads through the node, to a name that begins at byte at.
func (s *state) checkPassable(path string, at int) error {
	switch s.kind {
	case metadata.Virtual:
		return &metadata.ElsewhereError{At: path[:at-1], Owner: s.content()}
	case metadata.File:
		return &metadata.Error{Path: path, Err: metadata.ErrNotDirectory}
	}
	return nil
}

// lockPath walks a path and locks the node that it leads to. moves is held, as one of many,
// so that all its ancestors stay. Where an error is returned the walk was whole, and
// nothing is locked.
func (t *Tree) lockPath(path string, w *walk) error {
	for ; ; runtime.Gosched() {
		if !t.tryWalk(path, w) {
			continue
		}
		if w.err != nil {
			return w.err
		}
		if t.lockNode(w) {
			return nil
		}
	}
}

// lockNode locks the node that a walk reached, and takes its state anew; it is false where
// the node was removed meanwhile.
func (t *Tree) lockNode(w *walk) bool {
	t.waits.lock(&w.node.mu)
	if w.node.removed() {
		w.node.mu.Unlock()
		return false
	}
	w.state = w.node.state.Load()
	return true
}

// lockDir is lock for the directory that path's last name is in.
func (t *Tree) lockDir(path string, w *walk) (name string, err error) {
	dir, name := metadata.Split(path)
	if err := t.lockPath(dir, w); err != nil {
		return "", withPath(err, path)
	}
	if err := w.state.checkPassable(path, len(path)-len(name)); err != nil {
		w.node.mu.Unlock()
		return "", err
	}
	return name, nil
}

// withPath is an error of a parent's path as one of the path that was asked for.
func withPath(err error, path string) error {
	if e, ok := err.(*metadata.Error); ok {
		return &metadata.Error{Path: path, Err: e.Err}
	}
	return err
}

// slotLock is a lock that many hold at once and that is seldom wanted by one alone: each
// holder locks one of many slots, on a cache line of its own, and who wants to be alone
// locks them all, in order.
type slotLock struct {
	slots []slot
}

type slot struct {
	sync.RWMutex
	_ [64]byte // the next slot is on another cache line
}

func newSlotLock() slotLock {
	n := 1
	for n < 4*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return slotLock{slots: make([]slot, n)}
}

// rlockOne locks for one of many.
func (s *slotLock) rlockOne(w *waitCounter) *slot {
	l := &s.slots[rand.Uint32()&uint32(len(s.slots)-1)]
	if !l.TryRLock() {
		start := time.Now()
		l.RLock()
		w.add(start)
	}
	return l
}

// lockAll locks for one; end unlocks.
func (s *slotLock) lockAll(w *waitCounter) (end func()) {
	start, waited := time.Time{}, false
	for i := range s.slots {
		if s.slots[i].TryLock() {
			continue
		}
		if !waited {
			start, waited = time.Now(), true
		}
		s.slots[i].Lock()
	}
	if waited {
		w.add(start)
	}
	return func() {
		for i := range s.slots {
			s.slots[i].Unlock()
		}
	}
}

// waitCounter counts the locks that had to be waited for, and how long.
type waitCounter struct {
	count, nanoseconds atomic.Int64
}

func (w *waitCounter) add(start time.Time) {
	w.count.Add(1)
	w.nanoseconds.Add(int64(time.Since(start)))
}

// lock locks a mutex and counts the wait.
func (w *waitCounter) lock(mu *sync.Mutex) {
	if mu.TryLock() {
		return
	}
	start := time.Now()
	mu.Lock()
	w.add(start)
}
