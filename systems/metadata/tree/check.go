package tree

import (
	"fmt"

	"skerry/systems/metadata"
)

// CheckAll returns an error unless all commands would succeed if they ran one after another with nothing between them.
// The commands are those of transactions between servers: mkdir, write, touch, chmod, rmdir, rm, mv and delegate. The
// directory of delegate must be empty, new, or virtual. CheckAll changes nothing.
func (t *Tree) CheckAll(commands []metadata.Command) error {
	o := tentative{tree: t, changed: make(map[string]found)}
	for _, c := range commands {
		if err := o.check(c); err != nil {
			return err
		}
	}
	return nil
}

type found struct {
	kind    metadata.Kind
	entries int
	owner   string
	node    *node // nil if the entry is not in the tree yet
}

// tentative is a tree with changes that are only planned.
type tentative struct {
	tree    *Tree
	changed map[string]found
}

// lookup returns the entry at a path. Nothing exists below a changed path.
func (o *tentative) lookup(path string) (found, error) {
	for p := path; p != "/"; p, _ = metadata.Split(p) {
		f, changed := o.changed[p]
		if changed && p == path {
			return f, nil
		}
		if changed {
			return found{}, nil
		}
	}
	var w walk
	o.tree.walkPath(path, &w)
	if w.err != nil {
		if w.state.kind == metadata.Directory {
			return found{}, nil
		}
		return found{}, w.err
	}
	f := found{kind: w.state.kind, entries: w.state.kids.len(), node: w.node}
	if f.kind == metadata.Virtual {
		f.owner = w.state.content()
	}
	return f, nil
}

func (o *tentative) checkFree(path string) error {
	dir, _ := metadata.Split(path)
	parent, err := o.lookup(dir)
	if err != nil {
		return err
	}
	switch parent.kind {
	case 0:
		return &metadata.Error{Path: path, Err: metadata.ErrNotFound}
	case metadata.File:
		return &metadata.Error{Path: path, Err: metadata.ErrNotDirectory}
	case metadata.Virtual:
		return &metadata.ElsewhereError{At: dir, Owner: parent.owner}
	}
	f, err := o.lookup(path)
	if err == nil && f.kind != 0 {
		err = &metadata.Error{Path: path, Err: metadata.ErrExists}
	}
	return err
}

func (o *tentative) check(c metadata.Command) error {
	if c.Op == metadata.Mkdir && c.Parents && o.makeInRoot(c.Path) {
		return nil
	}
	if c.Op == metadata.Mkdir || c.Op == metadata.Write {
		kind := metadata.Directory
		if c.Op == metadata.Write {
			kind = metadata.File
		}
		return o.recordChange(c.Path, found{kind: kind}, o.checkFree(c.Path))
	}
	f, err := o.lookup(c.Path)
	switch {
	case err != nil:
		return err
	case f.kind == 0:
		return &metadata.Error{Path: c.Path, Err: metadata.ErrNotFound}
	case f.kind == metadata.Virtual && c.Op != metadata.Delegate && c.Owner != f.owner && !c.Across:
		return &metadata.ElsewhereError{At: c.Path, Owner: f.owner}
	}
	switch c.Op {
	case metadata.Touch, metadata.Chmod:
		return nil
	case metadata.Move:
		return o.checkMove(c, f)
	case metadata.Remove, metadata.Rmdir:
		return o.recordChange(c.Path, found{}, o.checkRemove(c, f))
	case metadata.Delegate:
		return o.recordChange(c.Path, found{kind: metadata.Virtual, owner: c.Owner}, o.checkDelegate(c, f))
	}
	return &metadata.Error{Path: c.Path, Err: fmt.Errorf("%w operation in a transaction: %s", metadata.ErrInvalid, c.Op)}
}

func (o *tentative) makeInRoot(path string) bool {
	f, err := o.lookup(path)
	if dir, _ := metadata.Split(path); err != nil || dir != "/" || f.kind != 0 && f.kind != metadata.Directory {
		return false
	}
	if f.kind == 0 {
		o.changed[path] = found{kind: metadata.Directory}
	}
	return true
}

func (o *tentative) recordChange(path string, f found, err error) error {
	if err == nil {
		o.changed[path] = f
	}
	return err
}

func (o *tentative) checkRemove(c metadata.Command, f found) error {
	switch {
	case f.kind == metadata.Virtual && (c.Op == metadata.Rmdir || c.Recursive && c.Across):
		return nil
	case f.kind == metadata.Virtual:
		return &metadata.ElsewhereError{At: c.Path, Owner: f.owner}
	case c.Op == metadata.Rmdir && f.kind == metadata.File:
		return &metadata.Error{Path: c.Path, Err: metadata.ErrNotDirectory}
	case c.Op == metadata.Rmdir && f.entries > 0:
		return &metadata.Error{Path: c.Path, Err: metadata.ErrNotEmpty}
	case c.Op == metadata.Rmdir && c.Owner != "":
		return &metadata.Error{Path: c.Path, Err: metadata.ErrNotFound}
	case c.Op == metadata.Remove && !c.Recursive && f.kind != metadata.File:
		return &metadata.Error{Path: c.Path, Err: metadata.ErrIsDirectory}
	case c.Recursive && !c.Across && f.node != nil:
		defer o.tree.moves.lockAll(&o.tree.waits)()
		return o.tree.checkLocal(f.node, c.Path)
	}
	return nil
}

// checkDelegate uses c.To as the owner that a virtual directory must have.
func (o *tentative) checkDelegate(c metadata.Command, f found) error {
	switch {
	case f.kind == metadata.File:
		return &metadata.Error{Path: c.Path, Err: metadata.ErrNotDirectory}
	case f.kind == metadata.Virtual && f.owner != c.To:
		return &metadata.ElsewhereError{At: c.Path, Owner: f.owner}
	case f.kind == metadata.Directory && c.To != "":
		return &metadata.Error{Path: c.Path, Err: metadata.ErrNotFound}
	case f.entries > 0:
		return &metadata.Error{Path: c.Path, Err: metadata.ErrNotEmpty}
	}
	return nil
}

func (o *tentative) checkMove(c metadata.Command, f found) error {
	if !c.Across && f.node != nil {
		end := o.tree.moves.lockAll(&o.tree.waits)
		err := o.tree.checkLocal(f.node, c.Path)
		end()
		if err != nil {
			return err
		}
	}
	target, err := o.lookup(c.To)
	if err != nil {
		return err
	}
	if target.kind != 0 {
		moved, there := state{kind: f.kind}, state{kind: target.kind}
		if target.owner != "" {
			there.text = &target.owner
		}
		if target.node != nil {
			there = *target.node.state.Load()
		}
		if err := checkReplace(&moved, &there, c); err != nil {
			return err
		}
		delete(o.changed, c.To)
	} else if err := o.checkFree(c.To); err != nil {
		return err
	}
	if f.node != nil {
		if err := checkDepth(f.node, c); err != nil {
			return err
		}
	}
	o.changed[c.Path], o.changed[c.To] = found{}, f
	return nil
}

// CheckChange returns the error of a change that would fail now and need not be logged, else nil.
func (t *Tree) CheckChange(c metadata.Command) error {
	var w walk
	t.walkPath(c.Path, &w)
	switch {
	case w.err == nil && (c.Op == metadata.Create || c.Op == metadata.Mkdir && !c.Parents):
		return &metadata.Error{Path: c.Path, Err: metadata.ErrExists}
	case w.err == nil:
		return nil
	case c.Op == metadata.Mkdir && c.Parents, w.at+len(lastName(c.Path)) == len(c.Path):
		// The missing entry is the one to create, unless the way to it is blocked.
		if err := w.state.checkPassable(c.Path, w.at); err != nil || c.Op == metadata.Mkdir || c.Op == metadata.Create || c.Op == metadata.Write {
			return err
		}
	}
	return w.err
}
