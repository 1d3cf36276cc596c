package cluster

import (
	"context"
	"errors"

	"skerry/systems/metadata"
)

// source is an entry that a transaction takes from its place.
type source struct {
	place
	path    string         // in the server's tree
	entry   metadata.Entry // Virtual with the owner
	data    []byte         // of a file
	virtual []metadata.Entry
}

// lockSource locks an entry, and tells what it is. The server becomes the coordinator.
func (t *transaction) lockSource(ctx context.Context, whole string, at place, also string) (source, error) {
	t.coordinator = at.server
	s := source{place: at, path: at.toLocal(whole)}
	found := t.prepare(ctx, at.server, s.path, also)
	if found.Err == nil && len(found.Entries) == 0 {
		found.Err = &metadata.Error{Path: s.path, Err: metadata.ErrNotFound}
	}
	if found.Err != nil {
		return s, t.r.translateError(at, whole, found.Err)
	}
	s.entry, s.virtual, s.data = found.Entries[0], found.Entries[1:], found.Data
	return s, nil
}

// translateError is an error of a server about the way to a path: errAgain where it tells that the
// map has changed, a doubt where it may.
func (r *Router) translateError(at place, whole string, err error) error {
	var e *metadata.ElsewhereError
	if errors.As(err, &e) && e.At != at.toLocal(whole) && metadata.Under(at.toLocal(whole), e.At) && r.learnArea(at.toGlobal(e.At), e.Owner) {
		return errAgain
	}
	found := at.globalError(metadata.Command{Path: whole}, err)
	if !at.mayBeGone(err) {
		return found
	}
	return &staleMapError{found, func(ctx context.Context) error {
		gone, problem := r.removeDangling(ctx, at)
		switch {
		case problem != nil:
			return problem
		case gone:
			return errAgain
		}
		return found
	}}
}

// lockSubtrees has the servers of subtrees that are below a directory, and of those below these,
// run a command. Virtual are virtual directories in the tree of a server that at is a
// place of.
func (t *transaction) lockSubtrees(ctx context.Context, at place, virtual []metadata.Entry, command func(metadata.Subtree) metadata.Command) error {
	for _, v := range virtual {
		top := at.toGlobal(v.Name)
		sub, ok := metadata.ParseSubtree(v.Owner)
		if _, known := t.r.parseArea(top, v.Owner); !ok || !known {
			return &metadata.ElsewhereError{At: top, Owner: v.Owner}
		}
		for _, part := range sub.Parts() {
			if err := t.lockPart(ctx, place{top: top, server: part.Server, base: part.Base()}, command(part), command); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockPart is along for a subtree, or a part of one, that c is the command for.
func (t *transaction) lockPart(ctx context.Context, at place, c metadata.Command, command func(metadata.Subtree) metadata.Command) error {
	var found metadata.Result
	if at.server == t.coordinator {
		found = t.prepare(ctx, at.server, c.Path, c.To)
		if found.Err == nil && len(found.Entries) == 0 {
			found.Err = metadata.ErrNotFound
		} else if found.Err == nil && c.Op == metadata.Rmdir && found.Entries[0].Size > 0 {
			found.Err = metadata.ErrNotEmpty
		}
		t.addCommands(c)
	} else {
		found = t.prepare(ctx, at.server, c.Path, c.To, c)
	}
	switch {
	case errors.Is(found.Err, metadata.ErrNotFound):
		return t.r.translateError(at, at.top, found.Err)
	case found.Err != nil:
		return found.Err
	}
	return t.lockSubtrees(ctx, at, found.Entries[1:], command)
}

// advanceEpoch is the command that gives a subtree its next epoch: its place in the whole changes.
func advanceEpoch(s metadata.Subtree) metadata.Command {
	return metadata.Command{Op: metadata.Move, Path: s.Base(), To: s.NextEpoch().Base(), Across: true, MaxDepth: -1}
}

// rmdirSubtree is the command that removes a subtree that is empty.
func rmdirSubtree(s metadata.Subtree) metadata.Command {
	return metadata.Command{Op: metadata.Rmdir, Path: s.Base(), MaxDepth: -1}
}

// removeSubtree is the command that removes a subtree.
func removeSubtree(s metadata.Subtree) metadata.Command { return removeCommand(s.Base()) }

func removeCommand(path string) metadata.Command {
	return metadata.Command{Op: metadata.Remove, Path: path, Recursive: true, Across: true, MaxDepth: -1}
}

// removeAll is rm -r of what is on several servers.
func (r *Router) removeAll(ctx context.Context, c metadata.Command) metadata.Result {
	result := r.transact(ctx, c.Identity, func(ctx context.Context, t *transaction) metadata.Result {
		s, err := t.lockSource(ctx, c.Path, r.parentPlace(c.Path), "")
		if err != nil {
			return metadata.Result{Err: err}
		}
		virtual := s.virtual
		if s.entry.Kind == metadata.Virtual {
			s.entry.Name = s.path
			virtual = []metadata.Entry{s.entry}
		}
		if err := t.lockSubtrees(ctx, s.place, virtual, removeSubtree); err != nil {
			return metadata.Result{Err: err}
		}
		t.addCommands(removeCommand(s.path))
		return t.commit(ctx)
	})
	r.known.forget(place{top: c.Path})
	return result
}
