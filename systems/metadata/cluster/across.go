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

// take locks an entry, and tells what it is. The server becomes the coordinator.
func (t *transaction) take(ctx context.Context, whole string, at place, also string) (source, error) {
	t.coordinator = at.server
	s := source{place: at, path: at.in(whole)}
	found := t.prepare(ctx, at.server, s.path, also)
	if found.Err == nil && len(found.Entries) == 0 {
		found.Err = &metadata.Error{Path: s.path, Err: metadata.ErrNotFound}
	}
	if found.Err != nil {
		return s, t.r.lost(at, whole, found.Err)
	}
	s.entry, s.virtual, s.data = found.Entries[0], found.Entries[1:], found.Data
	return s, nil
}

// lost is an error of a server about the way to a path: errAgain where it tells that the
// map has changed, a doubt where it may.
func (r *Router) lost(at place, whole string, err error) error {
	var e *metadata.Elsewhere
	if errors.As(err, &e) && e.At != at.in(whole) && metadata.Under(at.in(whole), e.At) && r.learn(at.out(e.At), e.Owner) {
		return errAgain
	}
	found := at.problem(metadata.Command{Path: whole}, err)
	if !at.gone(err) {
		return found
	}
	return &doubt{found, func(ctx context.Context) error {
		gone, problem := r.buried(ctx, at)
		switch {
		case problem != nil:
			return problem
		case gone:
			return errAgain
		}
		return found
	}}
}

// along has the servers of subtrees that are below a directory, and of those below these,
// run a command. Virtual are virtual directories in the tree of a server that at is a
// place of.
func (t *transaction) along(ctx context.Context, at place, virtual []metadata.Entry, command func(metadata.Subtree) metadata.Command) error {
	for _, v := range virtual {
		top := at.out(v.Name)
		sub, ok := metadata.ParseSubtree(v.Owner)
		if _, known := t.r.areaOf(top, v.Owner); !ok || !known {
			return &metadata.Elsewhere{At: top, Owner: v.Owner}
		}
		for _, part := range sub.Each() {
			if err := t.alongPart(ctx, place{top: top, server: part.Server, base: part.Base()}, command(part), command); err != nil {
				return err
			}
		}
	}
	return nil
}

// alongPart is along for a subtree, or a part of one, that c is the command for.
func (t *transaction) alongPart(ctx context.Context, at place, c metadata.Command, command func(metadata.Subtree) metadata.Command) error {
	var found metadata.Result
	if at.server == t.coordinator {
		found = t.prepare(ctx, at.server, c.Path, c.To)
		if found.Err == nil && len(found.Entries) == 0 {
			found.Err = metadata.ErrNotFound
		} else if found.Err == nil && c.Op == metadata.Rmdir && found.Entries[0].Size > 0 {
			found.Err = metadata.ErrNotEmpty
		}
		t.run(c)
	} else {
		found = t.prepare(ctx, at.server, c.Path, c.To, c)
	}
	switch {
	case errors.Is(found.Err, metadata.ErrNotFound):
		return t.r.lost(at, at.top, found.Err)
	case found.Err != nil:
		return found.Err
	}
	return t.along(ctx, at, found.Entries[1:], command)
}

// next is the command that gives a subtree its next epoch: its place in the whole changes.
func next(s metadata.Subtree) metadata.Command {
	return metadata.Command{Op: metadata.Move, Path: s.Base(), To: s.Next().Base(), Across: true, MaxDepth: -1}
}

// emptied is the command that removes a subtree that is empty.
func emptied(s metadata.Subtree) metadata.Command {
	return metadata.Command{Op: metadata.Rmdir, Path: s.Base(), MaxDepth: -1}
}

// removal is the command that removes a subtree.
func removal(s metadata.Subtree) metadata.Command { return removalOf(s.Base()) }

func removalOf(path string) metadata.Command {
	return metadata.Command{Op: metadata.Remove, Path: path, Recursive: true, Across: true, MaxDepth: -1}
}

// removeAll is rm -r of what is on several servers.
func (r *Router) removeAll(ctx context.Context, c metadata.Command) metadata.Result {
	result := r.transact(ctx, c.Identity, func(ctx context.Context, t *transaction) metadata.Result {
		s, err := t.take(ctx, c.Path, r.parent(c.Path), "")
		if err != nil {
			return metadata.Result{Err: err}
		}
		virtual := s.virtual
		if s.entry.Kind == metadata.Virtual {
			s.entry.Name = s.path
			virtual = []metadata.Entry{s.entry}
		}
		if err := t.along(ctx, s.place, virtual, removal); err != nil {
			return metadata.Result{Err: err}
		}
		t.run(removalOf(s.path))
		return t.commit(ctx)
	})
	r.known.forget(place{top: c.Path})
	return result
}
