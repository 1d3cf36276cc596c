package tree

import (
	"slices"
	"strings"

	"skerry/systems/metadata"
)

// rmdir removes an empty directory. It locks the directory and its parent.
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

func (t *Tree) locate(path string) (dir *node, name string, n *node, err error) {
	if dir, name, err = t.dirOf(path); err != nil {
		return nil, "", nil, err
	}
	if n = dir.state.Load().kids.get(name); n == nil {
		return nil, "", nil, &metadata.Error{Path: path, Err: metadata.ErrNotFound}
	}
	return dir, name, n, nil
}

func (t *Tree) dirOf(path string) (dir *node, name string, err error) {
	var w walk
	parent, name := metadata.Split(path)
	t.tryWalk(parent, &w)
	if w.err != nil {
		return nil, "", withPath(w.err, path)
	}
	return w.node, name, w.state.checkPassable(path, len(path)-len(name))
}

// each calls visit for the states of a node and of all nodes below it, without recursion: trees may be deep.
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

// pathBelow returns a node's path relative to an ancestor: "/b/c". It searches each directory on the way.
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

func (t *Tree) changeOwner(c metadata.Command) metadata.Result {
	n, gone, err := t.setOwner(c)
	if err != nil {
		return metadata.Result{Err: err}
	}
	gone.each(func(s *state) { t.addCounts(s, -1) })
	return entryResult(lastName(c.Path), n)
}

// setOwner returns the node, and a detached node with its previous state.
func (t *Tree) setOwner(c metadata.Command) (n, gone *node, err error) {
	defer t.moves.lockAll(&t.waits)()
	if _, _, n, err = t.locate(c.Path); err != nil {
		return nil, nil, err
	}
	s := *n.state.Load()
	gone = newNode(n.id, nil, s)
	switch {
	case s.kind == metadata.File:
		return nil, nil, &metadata.Error{Path: c.Path, Err: metadata.ErrNotDirectory}
	case c.Op == metadata.Adopt && s.kind == metadata.Directory:
		return nil, nil, &metadata.Error{Path: c.Path, Err: metadata.ErrExists}
	case c.Op == metadata.Delegate && c.Exclusive && s.kind == metadata.Virtual:
		return nil, nil, s.checkPassable(c.Path, len(c.Path)+1)
	case c.Op == metadata.Delegate && c.Exclusive && s.kids.len() > 0:
		return nil, nil, &metadata.Error{Path: c.Path, Err: metadata.ErrNotEmpty}
	case c.Op == metadata.Delegate && s.kind == metadata.Directory:
		if err := t.checkLocal(n, c.Path); err != nil {
			return nil, nil, err
		}
	}
	n.edge.Add(1)
	s.kids, s.text, s.modified, s.kind = nil, nil, c.Time, metadata.Directory
	if c.Op == metadata.Delegate {
		owner := c.Owner
		s.text, s.kind = &owner, metadata.Virtual
	}
	t.publish(n, s)
	n.edge.Add(1)
	t.trackVirtual(n, s.kind)
	t.addCounts(&s, 1)
	return n, gone, nil
}

func (t *Tree) trackVirtual(n *node, kind metadata.Kind) {
	t.virtualsMu.Lock()
	defer t.virtualsMu.Unlock()
	if kind == metadata.Virtual {
		t.virtuals[n] = struct{}{}
	} else {
		delete(t.virtuals, n)
	}
}

// VirtualOwners returns the owners of all virtual directories by path.
func (t *Tree) VirtualOwners() map[string]string {
	defer t.moves.lockAll(&t.waits)()
	t.virtualsMu.Lock()
	defer t.virtualsMu.Unlock()
	m := make(map[string]string, len(t.virtuals))
	for v := range t.virtuals {
		m[v.pathBelow(nil)] = v.state.Load().content()
	}
	return m
}

// virtualNodes returns the virtual directories at and below a node. The caller holds all of moves.
func (t *Tree) virtualNodes(top *node) map[*node]struct{} {
	t.virtualsMu.Lock()
	defer t.virtualsMu.Unlock()
	found := make(map[*node]struct{})
	for v := range t.virtuals {
		for n := v; n != nil; n = n.parent {
			if n == top {
				found[v] = struct{}{}
				break
			}
		}
	}
	return found
}

// checkLocal returns an error if part of the subtree is on another server. The caller holds all of moves.
func (t *Tree) checkLocal(top *node, path string) error {
	for v := range t.virtualNodes(top) {
		return &metadata.ElsewhereError{At: path + v.pathBelow(top), Owner: v.state.Load().content()}
	}
	return nil
}

// advanceEpochs gives virtual directories at and below a moved node the next epoch. The caller holds all of moves.
func (t *Tree) advanceEpochs(top *node) {
	for v := range t.virtualNodes(top) {
		s := *v.state.Load()
		if sub, ok := metadata.ParseSubtree(s.content()); ok {
			owner := sub.NextEpoch().Owner()
			s.text = &owner
			t.publish(v, s)
		}
	}
}

// VirtualEntries returns the virtual directories at and below a path, named by their paths and sorted.
func (t *Tree) VirtualEntries(path string) []metadata.Entry {
	defer t.moves.lockAll(&t.waits)()
	var w walk
	if t.tryWalk(path, &w); w.err != nil {
		return nil
	}
	var list []metadata.Entry
	for v := range t.virtualNodes(w.node) {
		e := v.state.Load().entry(strings.TrimSuffix(path, "/")+v.pathBelow(w.node), v.id)
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b metadata.Entry) int { return strings.Compare(a.Name, b.Name) })
	return list
}
