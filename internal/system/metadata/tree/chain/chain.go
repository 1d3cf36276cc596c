// Package chain is a directory tree with the locks as the service's description has them,
// to the letter: a chain of read-write locks from the root down. It is what package tree
// is compared with, in its answers and its speed; what has no locks of its own to show
// (find, delegate, adopt) it does not do.
//
//	ls, stat, read     every node of the path for reading
//	mkdir, create      the ancestors for reading, the directory for writing
//	rmdir, rm, write   and the entry for writing
//	chmod, touch       the ancestors for reading, the entry for writing
//	mv                 the ancestors of both paths for reading, both directories and the
//	                   entries for writing, all in the order of their paths
package chain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"skerry/internal/system/metadata"
)

// Tree is a tree.Namespace.
type Tree struct {
	root *node
}

type node struct {
	sync.RWMutex
	kids     map[string]*node
	kind     metadata.Kind
	mode     uint16
	modified int64
	data     string
}

// New is a tree with nothing but a root.
func New() *Tree {
	return &Tree{root: directory(metadata.DefaultDirMode, 0)}
}

func directory(mode uint16, now int64) *node {
	return &node{kind: metadata.Directory, mode: mode, modified: now, kids: make(map[string]*node)}
}

func file(mode uint16, now int64, data string) *node {
	return &node{kind: metadata.File, mode: mode, modified: now, data: data}
}

// Do runs a command that passed Check.
func (t *Tree) Do(c metadata.Command) metadata.Result {
	switch c.Op {
	case metadata.List, metadata.Stat, metadata.Read:
		return t.look(c)
	case metadata.Mkdir, metadata.Create, metadata.Write, metadata.Rmdir, metadata.Remove:
		return t.change(c)
	case metadata.Chmod, metadata.Touch:
		return t.set(c)
	case metadata.Move:
		return t.move(c)
	}
	return failed(c.Path, fmt.Errorf("%w operation", metadata.ErrInvalid))
}

func failed(path string, err error) metadata.Result {
	return metadata.Result{Err: &metadata.Error{Path: path, Err: err}}
}

// held are locks, in the order in which they were taken.
type held []lock

type lock struct {
	*node
	writing bool
}

func (h *held) take(n *node, writing bool) {
	if writing {
		n.Lock()
	} else {
		n.RLock()
	}
	*h = append(*h, lock{n, writing})
}

func (h held) release() {
	for _, l := range slices.Backward(h) {
		if l.writing {
			l.Unlock()
		} else {
			l.RUnlock()
		}
	}
}

// walk locks a path from the root down, its last node for writing where asked for. What
// it locked is locked also where it returns an error.
func (t *Tree) walk(path string, writing bool, h *held) (*node, error) {
	n := t.root
	h.take(n, writing && path == "/")
	for rest := path[1:]; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if n.kind != metadata.Directory {
			return nil, &metadata.Error{Path: path, Err: metadata.ErrNotDirectory}
		}
		if n = n.kids[name]; n == nil {
			return nil, &metadata.Error{Path: path, Err: metadata.ErrNotFound}
		}
		h.take(n, writing && rest == "")
	}
	return n, nil
}

func (t *Tree) look(c metadata.Command) metadata.Result {
	var h held
	defer func() { h.release() }()
	n, err := t.walk(c.Path, false, &h)
	switch {
	case err != nil:
		return metadata.Result{Err: err}
	case c.Op == metadata.Stat:
		return metadata.Result{Entries: []metadata.Entry{n.entry(c.Path[strings.LastIndexByte(c.Path, '/')+1:])}}
	case c.Op == metadata.Read && n.kind == metadata.Directory:
		return failed(c.Path, metadata.ErrIsDirectory)
	case c.Op == metadata.Read:
		return metadata.Result{Data: []byte(n.data)}
	case n.kind != metadata.Directory:
		return failed(c.Path, metadata.ErrNotDirectory)
	}
	return n.list(c)
}

func (n *node) list(c metadata.Command) metadata.Result {
	var r metadata.Result
	for _, name := range slices.Sorted(maps.Keys(n.kids)) {
		if c.After != "" && name <= c.After {
			continue
		}
		if len(r.Entries) == c.Page() {
			r.Next = r.Entries[len(r.Entries)-1].Name
			break
		}
		e := metadata.Entry{Name: name}
		if c.Long {
			kid := n.kids[name]
			kid.RLock()
			e = kid.entry(name)
			kid.RUnlock()
		}
		r.Entries = append(r.Entries, e)
	}
	return r
}

func (n *node) entry(name string) metadata.Entry {
	e := metadata.Entry{Name: name, Kind: n.kind, Mode: n.mode, Modified: n.modified, Size: int64(len(n.kids))}
	if name == "" {
		e.Name = "/"
	}
	if n.kind == metadata.File {
		e.Size = int64(len(n.data))
	}
	return e
}

// change adds or removes an entry, or changes a file.
func (t *Tree) change(c metadata.Command) metadata.Result {
	if c.Path == "/" {
		if c.Parents {
			return t.look(metadata.Command{Op: metadata.Stat, Path: "/"})
		}
		return failed(c.Path, metadata.ErrExists)
	}
	if c.Op == metadata.Mkdir && c.Parents {
		return t.mkdirs(c)
	}
	var h held
	defer func() { h.release() }()
	path, name := metadata.Split(c.Path)
	dir, err := t.walk(path, true, &h)
	if err != nil {
		return failed(c.Path, err.(*metadata.Error).Err)
	}
	if dir.kind != metadata.Directory {
		return failed(c.Path, metadata.ErrNotDirectory)
	}
	n := dir.kids[name]
	if n != nil {
		h.take(n, true)
	}
	if c.Op == metadata.Rmdir || c.Op == metadata.Remove {
		return dir.remove(name, n, c)
	}
	return dir.add(name, n, c)
}

func (n *node) add(name string, there *node, c metadata.Command) metadata.Result {
	switch {
	case there == nil && c.Op == metadata.Mkdir:
		n.kids[name] = directory(c.Mode, c.Time)
	case there == nil:
		n.kids[name] = file(c.Mode, c.Time, string(c.Data))
	case c.Op == metadata.Write && there.kind == metadata.Directory:
		return failed(c.Path, metadata.ErrIsDirectory)
	case c.Op != metadata.Write || c.Exclusive:
		return failed(c.Path, metadata.ErrExists)
	default:
		there.data, there.modified = string(c.Data), c.Time
		return metadata.Result{Entries: []metadata.Entry{there.entry(name)}}
	}
	n.modified = c.Time
	return metadata.Result{Entries: []metadata.Entry{n.kids[name].entry(name)}}
}

func (n *node) remove(name string, there *node, c metadata.Command) metadata.Result {
	switch {
	case there == nil:
		return failed(c.Path, metadata.ErrNotFound)
	case c.Op == metadata.Rmdir && there.kind == metadata.File:
		return failed(c.Path, metadata.ErrNotDirectory)
	case c.Op == metadata.Rmdir && len(there.kids) > 0:
		return failed(c.Path, metadata.ErrNotEmpty)
	case c.Op == metadata.Remove && !c.Recursive && there.kind == metadata.Directory:
		return failed(c.Path, metadata.ErrIsDirectory)
	}
	delete(n.kids, name)
	n.modified = c.Time
	return metadata.Result{}
}

// mkdirs locks the path for writing from the first directory that may get an entry: since
// that is not known before, all of it.
func (t *Tree) mkdirs(c metadata.Command) metadata.Result {
	var h held
	defer func() { h.release() }()
	n, name := t.root, ""
	h.take(n, true)
	for rest := c.Path[1:]; rest != ""; {
		name, rest, _ = strings.Cut(rest, "/")
		kid := n.kids[name]
		switch {
		case n.kind != metadata.Directory:
			return failed(c.Path, metadata.ErrNotDirectory)
		case kid == nil:
			kid = directory(c.Mode, c.Time)
			n.kids[name], n.modified = kid, c.Time
		}
		h.take(kid, true)
		n = kid
	}
	if n.kind != metadata.Directory {
		return failed(c.Path, metadata.ErrExists)
	}
	return metadata.Result{Entries: []metadata.Entry{n.entry(name)}}
}

func (t *Tree) set(c metadata.Command) metadata.Result {
	var h held
	defer func() { h.release() }()
	n, err := t.walk(c.Path, true, &h)
	if err != nil {
		return metadata.Result{Err: err}
	}
	if c.Op == metadata.Chmod {
		n.mode = c.Mode
	} else {
		n.modified = c.Time
	}
	return metadata.Result{Entries: []metadata.Entry{n.entry(c.Path[strings.LastIndexByte(c.Path, '/')+1:])}}
}
