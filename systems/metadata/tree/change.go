package tree

import (
	"fmt"
	"strings"

	"skerry/systems/metadata"
)

func (s *state) with(it item, now int64) state {
	next := *s
	next.kids, next.modified = s.kids.with(it), now
	return next
}

func (s *state) without(name string, now int64) state {
	next := *s
	next.kids, next.modified = s.kids.without(name), now
	return next
}

func (t *Tree) add(c metadata.Command, s state) metadata.Result {
	if c.Path == "/" {
		return failure(c.Path, metadata.ErrExists)
	}
	defer t.moves.rlockOne(&t.waits).RUnlock()
	var w walk
	name, err := t.lockDir(c.Path, &w)
	if err != nil {
		return metadata.Result{Err: err}
	}
	defer w.node.mu.Unlock()
	if w.state.kids.get(name) != nil {
		return failure(c.Path, metadata.ErrExists)
	}
	return t.attach(w.node, w.state, name, s)
}

func (t *Tree) attach(dir *node, at *state, name string, s state) metadata.Result {
	n := newNode(t.lastID.Add(1), dir, s)
	t.addCounts(&s, 1)
	t.publish(dir, at.with(item{strings.Clone(name), n}, s.modified))
	return entryResult(name, n)
}

func entryResult(name string, n *node) metadata.Result {
	return metadata.Result{Entries: []metadata.Entry{n.state.Load().entry(name, n.id)}}
}

func (t *Tree) addCounts(s *state, by int64) {
	switch s.kind {
	case metadata.Directory:
		t.counts.directories.Add(by)
	case metadata.File:
		t.counts.files.Add(by)
		t.counts.bytes.Add(by * int64(len(s.content())))
	}
}

// mkdirs creates a directory and its missing parents at one moment: built apart, then attached.
func (t *Tree) mkdirs(c metadata.Command) metadata.Result {
	defer t.moves.rlockOne(&t.waits).RUnlock()
	for {
		var w walk
		if !t.tryWalk(c.Path, &w) {
			continue
		}
		if w.err == nil {
			if w.state.kind == metadata.File {
				return failure(c.Path, metadata.ErrExists)
			}
			return entryResult(lastName(c.Path), w.node)
		}
		if err := w.state.checkPassable(c.Path, w.at); err != nil {
			return metadata.Result{Err: err}
		}
		if w.at <= len(c.To) {
			return failure(c.Path, metadata.ErrNotFound)
		}
		if !t.lockNode(&w) {
			continue
		}
		name, rest, _ := strings.Cut(c.Path[w.at:], "/")
		if w.state.kids.get(name) != nil || w.state.kind != metadata.Directory {
			w.node.mu.Unlock()
			continue
		}
		r := t.attachPath(w.node, w.state, name, rest, c)
		w.node.mu.Unlock()
		return r
	}
}

func (t *Tree) attachPath(dir *node, at *state, name, rest string, c metadata.Command) metadata.Result {
	fresh := state{kind: metadata.Directory, mode: c.Mode, modified: c.Time}
	top := newNode(t.lastID.Add(1), dir, fresh)
	t.addCounts(&fresh, 1)
	bottom := top
	for rest != "" {
		var below string
		below, rest, _ = strings.Cut(rest, "/")
		n := newNode(t.lastID.Add(1), bottom, fresh)
		t.addCounts(&fresh, 1)
		full := bottom.state.Load().with(item{strings.Clone(below), n}, c.Time)
		bottom.state.Store(&full)
		bottom = n
	}
	t.publish(dir, at.with(item{strings.Clone(name), top}, c.Time))
	return entryResult(lastName(c.Path), bottom)
}

func (t *Tree) write(c metadata.Command) metadata.Result {
	defer t.moves.rlockOne(&t.waits).RUnlock()
	var w walk
	name, err := t.lockDir(c.Path, &w)
	if err != nil {
		return metadata.Result{Err: err}
	}
	defer w.node.mu.Unlock()
	text := string(c.Data)
	n := w.state.kids.get(name)
	if n == nil {
		return t.attach(w.node, w.state, name, state{kind: metadata.File, mode: c.Mode, modified: c.Time, text: &text})
	}
	t.waits.lock(&n.mu)
	defer n.mu.Unlock()
	s := *n.state.Load()
	switch {
	case s.kind == metadata.Virtual:
		return metadata.Result{Err: s.checkPassable(c.Path, len(c.Path)+1)}
	case s.kind == metadata.Directory:
		return failure(c.Path, metadata.ErrIsDirectory)
	case c.Exclusive:
		return failure(c.Path, metadata.ErrExists)
	}
	t.counts.bytes.Add(int64(len(text) - len(s.content())))
	s.text, s.modified = &text, c.Time
	t.publish(n, s)
	return entryResult(name, n)
}

func (t *Tree) setAttributes(c metadata.Command) metadata.Result {
	defer t.moves.rlockOne(&t.waits).RUnlock()
	var w walk
	if err := t.lockPath(c.Path, &w); err != nil {
		return metadata.Result{Err: err}
	}
	defer w.node.mu.Unlock()
	s := *w.state
	if s.kind == metadata.Virtual {
		return metadata.Result{Err: s.checkPassable(c.Path, len(c.Path)+1)}
	}
	if c.Op == metadata.Chmod {
		s.mode = c.Mode
	} else {
		s.modified = c.Time
	}
	t.publish(w.node, s)
	return entryResult(lastName(c.Path), w.node)
}

func (t *Tree) move(c metadata.Command) metadata.Result {
	defer t.moves.lockAll(&t.waits)()
	from, name, n, err := t.locate(c.Path)
	if err != nil {
		return metadata.Result{Err: err}
	}
	if !c.Across {
		if err := t.checkLocal(n, c.Path); err != nil {
			return metadata.Result{Err: err}
		}
	}
	to, newName, err := t.dirOf(c.To)
	if err != nil {
		return metadata.Result{Err: err}
	}
	if c.Path == c.To {
		return entryResult(name, n)
	}
	target := to.state.Load().kids.get(newName)
	if target != nil {
		if err := checkReplace(n.state.Load(), target.state.Load(), c); err != nil {
			return metadata.Result{Err: err}
		}
	}
	if err := checkDepth(n, c); err != nil {
		return metadata.Result{Err: err}
	}
	n.edge.Add(1)
	if target != nil {
		target.edge.Add(1)
		t.addCounts(target.state.Load(), -1)
	}
	t.reattach(n, from, name, to, strings.Clone(newName), c.Time)
	n.parent = to
	if c.Across && !metadata.Under(c.Path, metadata.Incoming) { // copied subtrees have their final epoch already
		t.advanceEpochs(n)
	}
	n.edge.Add(1)
	return entryResult(newName, n)
}

// reattach changes the entries of one or two directories. Two directories are both marked as moving before either
// changes, so that no reader sees one after the move and the other before it.
func (t *Tree) reattach(n, from *node, name string, to *node, newName string, now int64) {
	source, target := from.state.Load(), to.state.Load()
	if from == to {
		taken := source.without(name, now)
		t.publish(from, taken.with(item{newName, n}, now))
		return
	}
	for _, dir := range []*node{from, to} {
		s := *dir.state.Load()
		s.moving = true
		t.publish(dir, s)
	}
	t.publish(to, target.with(item{newName, n}, now))
	t.publish(from, source.without(name, now))
}

func checkReplace(moved, target *state, c metadata.Command) error {
	directory := moved.kind != metadata.File
	switch {
	case target.kind == metadata.Virtual:
		return target.checkPassable(c.To, len(c.To)+1)
	case !c.Replace:
		return &metadata.Error{Path: c.To, Err: metadata.ErrExists}
	case target.kids.len() > 0:
		return &metadata.Error{Path: c.To, Err: metadata.ErrNotEmpty}
	case directory && target.kind == metadata.File:
		return &metadata.Error{Path: c.To, Err: metadata.ErrNotDirectory}
	case !directory && target.kind == metadata.Directory:
		return &metadata.Error{Path: c.To, Err: metadata.ErrIsDirectory}
	}
	return nil
}

// checkDepth returns an error if a moved subtree would exceed MaxDepth. It walks the subtree for moves to a deeper level.
func checkDepth(n *node, c metadata.Command) error {
	depth := strings.Count(c.To, "/")
	if depth <= strings.Count(c.Path, "/") {
		return nil
	}
	level := []*node{n}
	for ; len(level) > 0; depth++ {
		if depth > metadata.MaxDepth {
			return &metadata.Error{Path: c.To, Err: fmt.Errorf("moved paths would be %w: at most %d levels", metadata.ErrTooLong, metadata.MaxDepth)}
		}
		var next []*node
		for _, n := range level {
			n.state.Load().kids.each("", true, func(it item) bool {
				next = append(next, it.node)
				return true
			})
		}
		level = next
	}
	return nil
}
