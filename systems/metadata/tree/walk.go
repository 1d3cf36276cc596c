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

// maxReadTries is the number of attempts of a read before it stops all changes of the tree.
const maxReadTries = 100

// step is an edge that a walk followed: the child and the edge's count at that time.
type step struct {
	node *node
	edge uint32
}

type walk struct {
	few   [16]step // steps of most paths; a slice would be allocated on the heap
	n     int      // length of few
	more  []step   // steps after few
	node  *node    // last node reached
	state *state   // state of node when it was reached
	at    int      // offset in the path of the first name not reached
	err   error    // why the walk stopped early; nil at the end of the path
}

// walkPath walks a path that existed as a whole at one moment: when the last state was loaded.
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

// descend follows a path as far as possible. It returns false when it meets a change in progress.
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
		// The edge must have existed when its count was loaded: the entries are unchanged, or still contain the child.
		if s := w.node.state.Load(); s != w.state && (s.moving || s.kids.get(path[w.at:end]) != child) {
			return false
		}
		w.addStep(step{child, edge})
		t.pause()
		w.node, w.state, w.at = child, child.state.Load(), end+1
	}
	return !w.state.moving
}

// checkPassable returns an error if no path leads through the node. The next name begins at byte at of path.
func (s *state) checkPassable(path string, at int) error {
	switch s.kind {
	case metadata.Virtual:
		return &metadata.ElsewhereError{At: path[:at-1], Owner: s.content()}
	case metadata.File:
		return &metadata.Error{Path: path, Err: metadata.ErrNotDirectory}
	}
	return nil
}

// lockPath walks a path and locks the last node, or fails with the path whole at one moment. The caller holds a slot of moves.
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

// lockNode locks the node that a walk reached and reloads its state. It returns false if the node has been removed.
func (t *Tree) lockNode(w *walk) bool {
	t.waits.lock(&w.node.mu)
	if w.node.removed() {
		w.node.mu.Unlock()
		return false
	}
	w.state = w.node.state.Load()
	return true
}

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

func withPath(err error, path string) error {
	if e, ok := err.(*metadata.Error); ok {
		return &metadata.Error{Path: path, Err: e.Err}
	}
	return err
}

// slotLock is a lock for many concurrent holders that is rarely acquired exclusively. A shared holder locks one of
// several slots, each on its own cache line. An exclusive holder locks all slots in order.
type slotLock struct {
	slots []slot
}

type slot struct {
	sync.RWMutex
	_ [64]byte // avoids false sharing of cache lines
}

func newSlotLock() slotLock {
	n := 1
	for n < 4*runtime.GOMAXPROCS(0) {
		n *= 2
	}
	return slotLock{slots: make([]slot, n)}
}

// rlockOne acquires the lock shared; the caller unlocks the returned slot.
func (s *slotLock) rlockOne(w *waitCounter) *slot {
	l := &s.slots[rand.Uint32()&uint32(len(s.slots)-1)]
	if !l.TryRLock() {
		start := time.Now()
		l.RLock()
		w.add(start)
	}
	return l
}

// lockAll acquires the lock exclusively; end releases it.
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

type waitCounter struct {
	count, nanoseconds atomic.Int64
}

func (w *waitCounter) add(start time.Time) {
	w.count.Add(1)
	w.nanoseconds.Add(int64(time.Since(start)))
}

func (w *waitCounter) lock(mu *sync.Mutex) {
	if mu.TryLock() {
		return
	}
	start := time.Now()
	mu.Lock()
	w.add(start)
}
