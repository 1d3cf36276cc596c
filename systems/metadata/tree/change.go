package tree

import (
	"strings"

	"skerry/systems/metadata"
)

// with is a directory's state with an entry added or replaced.
func (s *state) with(it item, now int64) state {
	next := *s
	next.kids, next.modified = s.kids.with(it), now
	return next
}

// without is a directory's state with an entry taken out.
func (s *state) without(name string, now int64) state {
	next := *s
	next.kids, next.modified = s.kids.without(name), now
	return next
}

// add makes a directory or file.
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

// attach adds a node to a directory that is locked.
func (t *Tree) attach(dir *node, at *state, name string, s state) metadata.Result {
	n := newNode(t.lastID.Add(1), dir, s)
	t.addCounts(&s, 1)
	t.publish(dir, at.with(item{strings.Clone(name), n}, s.modified))
	return entryResult(name, n)
}

func entryResult(name string, n *node) metadata.Result {
	return metadata.Result{Entries: []metadata.Entry{n.state.Load().entry(name, n.id)}}
}

// addCounts adds a node to what the tree holds, or takes it away.
func (t *Tree) addCounts(s *state, by int64) {
	switch s.kind {
	case metadata.Directory:
		t.counts.directories.Add(by)
	case metadata.File:
		t.counts.files.Add(by)
		t.counts.bytes.Add(by * int64(len(s.content())))
	}
}

// mkdirs makes a directory with its parents, at one moment: the new ones are made aside
// and hung up together.
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

// attachPath adds a directory with those of the path rest below it.
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

// write gives a file its content.
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

// setAttributes changes the mode or time of an entry.
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
