// Package tree is a directory tree in memory that many read and change at once.
//
// Every operation takes effect at one moment between its call and its return, as if it had
// locked its path from the root down: to read, all of it for reading; to change an entry,
// the directory that it is in for writing. Package chain does that to the letter. Tree has
// the same effect without a lock that all must pass:
//
//   - A directory's state (entries, mode, time) is a value that never changes, reached by
//     one atomic pointer. A reader loads one pointer a level, and in the end looks whether
//     the edges that it came by are still those that it saw: then there was a moment at
//     which its whole path was as it read it. If not it starts again.
//   - A change of one entry locks its directory alone. That no ancestor goes away is
//     certain as long as no directory moves and no subtree is removed: whoever changes an
//     entry holds moves as one of many, whoever moves or removes subtrees holds it alone.
//   - Locks are taken in the order moves, directory, entry, so that no two wait for each
//     other.
//
// Listing a directory of millions holds nothing, and a Snapshot is a point in time that
// costs what is changed while it is read.
package tree

import (
	"fmt"
	"sync"
	"sync/atomic"

	"skerry/systems/metadata"
)

// Namespace is what a tree can do. Commands must have passed metadata.Command.Check.
type Namespace interface {
	// Do runs one command, reading or changing.
	Do(c metadata.Command) metadata.Result
}

// rootID is the root's; those of others are greater, in the order in which they were made.
const rootID = 1

// Tree is a Namespace.
type Tree struct {
	root   *node
	moves  slotLock
	lastID atomic.Uint64
	counts counts
	waits  waitCounter
	snap   atomic.Pointer[Snapshot]
	yield  func() // of tests: gives way to others where an operation is half done

	// virtuals are the virtual directories, few as they are.
	virtualsMu sync.Mutex
	virtuals   map[*node]struct{}
}

type counts struct {
	directories, files, bytes, retries atomic.Int64
}

// Counts is what a tree holds, and what it cost to share it.
type Counts struct {
	Directories int64 `json:"directories"` // physical, the root among them
	Virtual     int64 `json:"virtual"`
	Files       int64 `json:"files"`
	Bytes       int64 `json:"bytes"` // of files' contents

	LockWaits   int64 `json:"lock_waits"`   // locks that were held by another when they were wanted
	LockWaitNS  int64 `json:"lock_wait_ns"` // for how long, in all
	ReadRetries int64 `json:"read_retries"` // reads that began again since their path changed
}

// New is a tree with nothing but a root.
func New() *Tree {
	t := &Tree{moves: newSlotLock(), virtuals: make(map[*node]struct{})}
	t.root = newNode(rootID, nil, state{kind: metadata.Directory, mode: metadata.DefaultDirMode})
	t.lastID.Store(rootID)
	t.counts.directories.Store(1)
	return t
}

// Counts is what the tree holds at the moment.
func (t *Tree) Counts() Counts {
	t.virtualsMu.Lock()
	virtual := int64(len(t.virtuals))
	t.virtualsMu.Unlock()
	return Counts{
		Directories: t.counts.directories.Load(), Virtual: virtual, Files: t.counts.files.Load(), Bytes: t.counts.bytes.Load(),
		LockWaits: t.waits.count.Load(), LockWaitNS: t.waits.nanoseconds.Load(), ReadRetries: t.counts.retries.Load(),
	}
}

// Do runs a command that passed Check.
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

// publish replaces a node's state; the node is locked, or moves is held alone.
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

// node is a directory, physical or virtual, or a file.
type node struct {
	// mu is held by whoever changes state.
	mu sync.Mutex
	// edge counts the changes of the edge that leads here from the parent: odd while one
	// is under way, and for good once the node was removed.
	edge atomic.Uint32
	id   uint64
	// parent changes with the tree's moves locked for one alone.
	parent *node
	// state is all else that is known. It is never changed, but replaced as a whole.
	state atomic.Pointer[state]
}

// state is a node at one moment.
type state struct {
	kids     *set    // of a physical directory
	text     *string // a file's content, a virtual directory's owner
	modified int64   // ns since 1970
	mode     uint16
	kind     metadata.Kind
	moving   bool // the entries are about to change together with those of another directory
}

func newNode(id uint64, parent *node, s state) *node {
	n := &node{id: id, parent: parent}
	n.state.Store(&s)
	return n
}

// removed tells whether the node is no longer in the tree; its parent or itself is locked.
func (n *node) removed() bool { return n.edge.Load()&1 == 1 }

// content is the text of a file or owner.
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
