// Package tree is a directory tree in memory for concurrent readers and writers.
//
// Every operation takes effect at one moment between its call and its return, as if it locked its path from the root: for
// reading, all nodes with read locks; for changing an entry, the entry's directory with a write lock. Tree has the same
// effect without a lock that all operations must pass:
//
//   - The state of a directory (entries, mode, time) is an immutable value behind one atomic pointer. A reader
//     loads one pointer per level. At the end it checks that the edges on its path are unchanged since it
//     followed them. Then its whole path existed at one moment. Otherwise it starts again.
//   - A change of one entry locks only the entry's directory. No ancestor disappears meanwhile, because only
//     moves and removals of subtrees detach ancestors: they lock all slots of moves, and every other change
//     locks one slot.
//   - Locks are acquired in the order moves, directory, entry, so that no two operations deadlock.
//
// Listing a directory with millions of entries holds no lock. A Snapshot costs as much memory as changes while it is
// written.
package tree

import (
	"fmt"
	"sync"
	"sync/atomic"

	"skerry/systems/metadata"
)

// Namespace is implemented by Tree and by the models of its tests. Commands must have passed metadata.Command.Check.
type Namespace interface {
	Do(c metadata.Command) metadata.Result
}

const rootID = 1

// Tree implements Namespace.
type Tree struct {
	root   *node
	moves  slotLock
	lastID atomic.Uint64
	counts counts
	waits  waitCounter
	snap   atomic.Pointer[Snapshot]
	yield  func() // for tests: runs other goroutines in the middle of an operation

	virtualsMu sync.Mutex
	virtuals   map[*node]struct{}
}

type counts struct {
	directories, files, bytes, retries atomic.Int64
}

// Counts describes the content of a tree and its contention.
type Counts struct {
	Directories int64 `json:"directories"` // physical, with the root
	Virtual     int64 `json:"virtual"`
	Files       int64 `json:"files"`
	Bytes       int64 `json:"bytes"` // content of files

	LockWaits   int64 `json:"lock_waits"`   // acquisitions that had to wait
	LockWaitNS  int64 `json:"lock_wait_ns"` // total wait
	ReadRetries int64 `json:"read_retries"` // reads that started again because their path changed
}

func New() *Tree {
	t := &Tree{moves: newSlotLock(), virtuals: make(map[*node]struct{})}
	t.root = newNode(rootID, nil, state{kind: metadata.Directory, mode: metadata.DefaultDirMode})
	t.lastID.Store(rootID)
	t.counts.directories.Store(1)
	return t
}

func (t *Tree) Counts() Counts {
	t.virtualsMu.Lock()
	virtual := int64(len(t.virtuals))
	t.virtualsMu.Unlock()
	return Counts{
		Directories: t.counts.directories.Load(), Virtual: virtual, Files: t.counts.files.Load(), Bytes: t.counts.bytes.Load(),
		LockWaits: t.waits.count.Load(), LockWaitNS: t.waits.nanoseconds.Load(), ReadRetries: t.counts.retries.Load(),
	}
}

func (t *Tree) Do(c metadata.Command) metadata.Result {
	switch c.Op {
	case metadata.List:
		return t.list(c)
	case metadata.Stat:
		return t.stat(c)
	case metadata.Read:
		return t.read(c)
	case metadata.Find:
		return t.find(c)
	case metadata.Mkdir:
		if c.Parents {
			return t.mkdirs(c)
		}
		return t.add(c, state{kind: metadata.Directory, mode: c.Mode, modified: c.Time})
	case metadata.Create:
		return t.add(c, state{kind: metadata.File, mode: c.Mode, modified: c.Time})
	case metadata.Write:
		return t.write(c)
	case metadata.Rmdir:
		return t.rmdir(c)
	case metadata.Remove:
		return t.remove(c)
	case metadata.Move:
		return t.move(c)
	case metadata.Chmod, metadata.Touch:
		return t.setAttributes(c)
	case metadata.Delegate, metadata.Adopt:
		return t.changeOwner(c)
	}
	return failure(c.Path, fmt.Errorf("%w operation", metadata.ErrInvalid))
}

func failure(path string, err error) metadata.Result {
	return metadata.Result{Err: &metadata.Error{Path: path, Err: err}}
}

func (t *Tree) publish(n *node, s state) {
	if snap := t.snap.Load(); snap != nil {
		snap.saveState(n)
	}
	t.pause()
	n.state.Store(&s)
	t.pause()
}

func (t *Tree) pause() {
	if t.yield != nil {
		t.yield()
	}
}

// node is a physical or virtual directory, or a file.
type node struct {
	mu sync.Mutex
	// edge counts changes of the edge from the parent. It is odd during a change, and forever after removal.
	edge atomic.Uint32
	id   uint64
	// parent changes only while one goroutine holds all of moves.
	parent *node
	// state is immutable; a change replaces it.
	state atomic.Pointer[state]
}

type state struct {
	kids     *set    // physical directory
	text     *string // file: content; virtual directory: owner
	modified int64   // ns since 1970
	mode     uint16
	kind     metadata.Kind
	moving   bool // entries are about to change together with those of another directory
}

func newNode(id uint64, parent *node, s state) *node {
	n := &node{id: id, parent: parent}
	n.state.Store(&s)
	return n
}

// removed reports whether the node is detached. The caller holds the lock of the node or of its parent.
func (n *node) removed() bool { return n.edge.Load()&1 == 1 }

func (s *state) content() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

func (s *state) entry(name string, id uint64) metadata.Entry {
	e := metadata.Entry{Name: name, Kind: s.kind, ID: id, Mode: s.mode, Modified: s.modified}
	switch s.kind {
	case metadata.Directory:
		e.Size = int64(s.kids.len())
	case metadata.Virtual:
		e.Owner = s.content()
	case metadata.File:
		e.Size = int64(len(s.content()))
	}
	return e
}
