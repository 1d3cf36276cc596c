package tree

import (
	"sync"
	"sync/atomic"

	"skerry/systems/metadata"
)

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
