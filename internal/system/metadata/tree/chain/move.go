package chain

import (
	"maps"
	"slices"
	"strings"

	"skerry/internal/system/metadata"
)

// move locks all nodes of both paths in the order of the paths, parents first, which is
// the order of every other operation too.
func (t *Tree) move(c metadata.Command) metadata.Result {
	var h held
	defer func() { h.release() }()
	nodes := t.both(c, &h)
	from, name, err := parent(nodes, c.Path)
	if err != nil {
		return failed(c.Path, err)
	}
	n := from.kids[name]
	if n == nil {
		return failed(c.Path, metadata.ErrNotFound)
	}
	to, newName, err := parent(nodes, c.To)
	if err != nil {
		return failed(c.To, err)
	}
	target := to.kids[newName]
	if target == n {
		return metadata.Result{Entries: []metadata.Entry{n.entry(newName)}}
	}
	switch {
	case target == nil:
	case !c.Replace:
		return failed(c.To, metadata.ErrExists)
	case len(target.kids) > 0:
		return failed(c.To, metadata.ErrNotEmpty)
	case n.kind == metadata.Directory && target.kind == metadata.File:
		return failed(c.To, metadata.ErrNotDirectory)
	case n.kind == metadata.File && target.kind == metadata.Directory:
		return failed(c.To, metadata.ErrIsDirectory)
	}
	delete(from.kids, name)
	to.kids[newName] = n
	from.modified, to.modified = c.Time, c.Time
	return metadata.Result{Entries: []metadata.Entry{n.entry(newName)}}
}

// both locks the nodes of both paths as far as they exist, and returns them by path.
func (t *Tree) both(c metadata.Command, h *held) map[string]*node {
	fromDir, _ := metadata.Split(c.Path)
	toDir, _ := metadata.Split(c.To)
	writing := map[string]bool{fromDir: true, toDir: true, c.Path: true, c.To: true}
	wanted := maps.Clone(writing)
	for _, p := range []string{c.Path, c.To} {
		for p != "/" {
			p, _ = metadata.Split(p)
			wanted[p] = true
		}
	}
	inOrder := slices.SortedFunc(maps.Keys(wanted), func(a, b string) int {
		return slices.Compare(strings.Split(strings.TrimRight(a, "/"), "/"), strings.Split(strings.TrimRight(b, "/"), "/"))
	})
	nodes := make(map[string]*node, len(wanted))
	for _, p := range inOrder {
		n := t.root
		if p != "/" {
			dir, name := metadata.Split(p)
			if nodes[dir] == nil || nodes[dir].kids[name] == nil {
				continue
			}
			n = nodes[dir].kids[name]
		}
		h.take(n, writing[p])
		nodes[p] = n
	}
	return nodes
}

// parent is the directory of a path's last name, among nodes that are locked.
func parent(nodes map[string]*node, path string) (dir *node, name string, err error) {
	p, name := metadata.Split(path)
	for up := p; ; up, _ = metadata.Split(up) {
		n := nodes[up]
		switch {
		case n == nil && up != "/":
			continue
		case n.kind != metadata.Directory:
			return nil, "", metadata.ErrNotDirectory
		case up != p:
			return nil, "", metadata.ErrNotFound
		}
		return n, name, nil
	}
}
