package tree

import "skerry/systems/metadata"

// rmdir removes an empty directory: the directory that it is in and itself are locked.
func (t *Tree) rmdir(c metadata.Command) metadata.Result {
	return t.detach(c, func(s *state) error {
		switch {
		case s.kind == metadata.File:
			return metadata.ErrNotDirectory
		case s.kids.len() > 0:
			return metadata.ErrNotEmpty
		}
		return nil
	})
}

// remove removes a file, or all that is below a path.
func (t *Tree) remove(c metadata.Command) metadata.Result {
	if c.Recursive {
		return t.removeAll(c)
	}
	return t.detach(c, func(s *state) error {
		if s.kind != metadata.File {
			return metadata.ErrIsDirectory
		}
		return nil
	})
}

// detach takes a node that has nothing below it out of its directory.
func (t *Tree) detach(c metadata.Command, allowed func(*state) error) metadata.Result {
	defer t.moves.rlockOne(&t.waits).RUnlock()
	var w walk
	name, err := t.lockDir(c.Path, &w)
	if err != nil {
		return metadata.Result{Err: err}
	}
	defer w.node.mu.Unlock()
	n := w.state.kids.get(name)
	if n == nil {
		return failure(c.Path, metadata.ErrNotFound)
	}
	t.waits.lock(&n.mu)
	defer n.mu.Unlock()
	s := n.state.Load()
	switch owned := c.Op == metadata.Rmdir && c.Owner != ""; {
	case s.kind != metadata.Virtual && owned:
		return failure(c.Path, metadata.ErrNotFound)
	case s.kind == metadata.Virtual && owned && c.Owner == s.content():
		t.trackVirtual(n, metadata.Directory)
	case s.kind == metadata.Virtual:
		return metadata.Result{Err: s.checkPassable(c.Path, len(c.Path)+1)}
	}
	if err := allowed(s); err != nil {
		return failure(c.Path, err)
	}
	n.edge.Add(1)
	t.addCounts(s, -1)
	t.publish(w.node, w.state.without(name, c.Time))
	return metadata.Result{}
}

// removeAll takes a subtree out at one moment, and counts afterwards what was in it.
func (t *Tree) removeAll(c metadata.Command) metadata.Result {
	n, err := t.detachSubtree(c)
	if err != nil {
		return metadata.Result{Err: err}
	}
	n.each(func(s *state) { t.addCounts(s, -1) })
	return metadata.Result{}
}

func (t *Tree) detachSubtree(c metadata.Command) (*node, error) {
	defer t.moves.lockAll(&t.waits)()
	dir, name, n, err := t.locate(c.Path)
	if err != nil {
		return nil, err
	}
	if !c.Across {
		if err := t.checkLocal(n, c.Path); err != nil {
			return nil, err
		}
	}
	for v := range t.virtualNodes(n) {
		t.trackVirtual(v, metadata.Directory)
	}
	n.edge.Add(1)
	t.publish(dir, dir.state.Load().without(name, c.Time))
	return n, nil
}

// locate is the node of a path and the directory that it is in; moves is held alone.
func (t *Tree) locate(path string) (dir *node, name string, n *node, err error) {
	if dir, name, err = t.dirOf(path); err != nil {
		return nil, "", nil, err
	}
	if n = dir.state.Load().kids.get(name); n == nil {
		return nil, "", nil, &metadata.Error{Path: path, Err: metadata.ErrNotFound}
	}
	return dir, name, n, nil
}

// dirOf is the directory that path's last name is in, or would be in.
func (t *Tree) dirOf(path string) (dir *node, name string, err error) {
	var w walk
	parent, name := metadata.Split(path)
	t.tryWalk(parent, &w)
	if w.err != nil {
		return nil, "", withPath(w.err, path)
	}
	return w.node, name, w.state.checkPassable(path, len(path)-len(name))
}

// each calls visit for the states of a node and all below it, deepest nesting without
// recursion.
func (n *node) each(visit func(*state)) {
	for open := []*node{n}; len(open) > 0; {
		s := open[len(open)-1].state.Load()
		open = open[:len(open)-1]
		visit(s)
		s.kids.each("", true, func(it item) bool {
			open = append(open, it.node)
			return true
		})
	}
}

// pathBelow is the path of a node from an ancestor: "/b/c". It looks for names among all
// entries on the way.
func (n *node) pathBelow(top *node) string {
	path := ""
	for ; n != top && n.parent != nil; n = n.parent {
		n.parent.state.Load().kids.each("", true, func(it item) bool {
			if it.node == n {
				path = "/" + it.name + path
			}
			return it.node != n
		})
	}
	return path
}
