package tree

import (
	"slices"
	"strings"

	"skerry/systems/metadata"
)

// changeOwner makes a directory virtual, or a virtual one physical and empty.
func (t *Tree) changeOwner(c metadata.Command) metadata.Result {
	n, gone, err := t.setOwner(c)
	if err != nil {
		return metadata.Result{Err: err}
	}
	gone.each(func(s *state) { t.addCounts(s, -1) })
	return entryResult(lastName(c.Path), n)
}

// setOwner returns the node, and one with the state that it had.
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

// trackVirtual keeps the list of virtual directories.
func (t *Tree) trackVirtual(n *node, kind metadata.Kind) {
	t.virtualsMu.Lock()
	defer t.virtualsMu.Unlock()
	if kind == metadata.Virtual {
		t.virtuals[n] = struct{}{}
	} else {
		delete(t.virtuals, n)
	}
}

// VirtualOwners is the map of subtrees to the servers that they are on, by path.
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

// virtualNodes are the virtual directories at and below a node; moves is held alone.
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

// checkLocal tells, by an error, whether a part of the subtree is on another server; moves is
// held alone.
func (t *Tree) checkLocal(top *node, path string) error {
	for v := range t.virtualNodes(top) {
		return &metadata.ElsewhereError{At: path + v.pathBelow(top), Owner: v.state.Load().content()}
	}
	return nil
}

// advanceEpochs has the virtual directories at and below a node that got another place stand
// for their subtrees' next epoch; moves is held alone.
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

// VirtualEntries are the virtual directories at and below a path, by their paths.
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
