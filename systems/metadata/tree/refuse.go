package tree

import "skerry/systems/metadata"

// CheckChange is the error that a change would end with if it were made at once, nil where it
// may succeed: a change that fails need not be made durable first.
func (t *Tree) CheckChange(c metadata.Command) error {
	var w walk
	t.walkPath(c.Path, &w)
	switch {
	case w.err == nil && (c.Op == metadata.Create || c.Op == metadata.Mkdir && !c.Parents):
		return &metadata.Error{Path: c.Path, Err: metadata.ErrExists}
	case w.err == nil:
		return nil
	case c.Op == metadata.Mkdir && c.Parents, w.at+len(lastName(c.Path)) == len(c.Path):
		// What is missing is what is to be made, unless the way there is barred.
		if err := w.state.checkPassable(c.Path, w.at); err != nil || createsEntry(c.Op) {
			return err
		}
	}
	return w.err
}

func createsEntry(o metadata.Op) bool {
	return o == metadata.Mkdir || o == metadata.Create || o == metadata.Write
}
