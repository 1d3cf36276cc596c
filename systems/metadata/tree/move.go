package tree

import (
	"fmt"
	"strings"

	"skerry/systems/metadata"
)

// move gives a node another name or directory, while nothing else changes.
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
	if c.Across && !metadata.Under(c.Path, metadata.Incoming) { // what comes in has its place already
		t.advanceEpochs(n)
	}
	n.edge.Add(1)
	return entryResult(newName, n)
}

// reattach changes the entries of one directory or of two. Of two, both are moving before
// either changes: who reads one as it became does not read the other as it was.
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

// checkReplace tells why target cannot give way to what moves there.
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

// checkDepth tells whether a subtree would reach below MaxDepth. It is looked through only
// where it moves further down.
func checkDepth(n *node, c metadata.Command) error {
	depth := strings.Count(c.To, "/")
	if depth <= strings.Count(c.Path, "/") {
		return nil
	}
	level := []*node{n}
	for ; len(level) > 0; depth++ {
		if depth > metadata.MaxDepth {
			return &metadata.Error{Path: c.To, Err: fmt.Errorf("what moves there would be %w: at most %d levels", metadata.ErrTooLong, metadata.MaxDepth)}
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
