package cluster

import (
	"context"
	"errors"

	"skerry/systems/metadata"
)

// rename is mv of what is on several servers, or from one to another. A file goes to the
// other server. A directory stays where it is: it becomes a subtree, which the other
// server's new virtual directory stands for.
func (r *Router) rename(ctx context.Context, c metadata.Command) metadata.Result {
	result := r.transact(ctx, c.Identity, func(ctx context.Context, t *transaction) metadata.Result {
		return t.rename(ctx, c)
	})
	r.known.forget(place{top: c.Path})
	r.known.forget(place{top: c.To})
	if result.Err == nil {
		for i := range result.Entries {
			_, result.Entries[i].Name = metadata.Split(c.To)
		}
	}
	return result
}

func (t *transaction) rename(ctx context.Context, c metadata.Command) metadata.Result {
	from, to := t.r.parentPlace(c.Path), t.r.parentPlace(c.To)
	same := from.server == to.server
	sub := metadata.Subtree{Server: from.server, ID: t.r.token()}
	also := sub.Base()
	if same {
		also = to.toLocal(c.To)
	}
	s, err := t.lockSource(ctx, c.Path, from, also)
	if err != nil {
		return metadata.Result{Err: err}
	}
	replaced, err := t.replaceTarget(ctx, c, s, to)
	if err != nil {
		return metadata.Result{Err: err}
	}
	if same {
		return t.renameHere(ctx, c, s, to, replaced)
	}
	arrival, err := t.leaveSource(ctx, s, sub, to.toLocal(c.To))
	if err == nil {
		made := t.prepare(ctx, to.server, to.toLocal(c.To), "", append(replaced, arrival...)...)
		err = t.targetError(c, to, made.Err)
	}
	if err != nil {
		return metadata.Result{Err: err}
	}
	result := t.commit(ctx)
	if at, ok := metadata.ParseSubtree(s.entry.Owner); ok {
		s.entry.Owner = at.NextEpoch().Owner()
	}
	if result.Err == nil {
		result.Entries = []metadata.Entry{s.entry}
	}
	return result
}

// renameHere moves an entry on its server, with the subtrees below it that are elsewhere.
func (t *transaction) renameHere(ctx context.Context, c metadata.Command, s source, to place, replaced []metadata.Command) metadata.Result {
	virtual := s.virtual
	if s.entry.Kind == metadata.Virtual {
		s.entry.Name = s.path
		virtual = []metadata.Entry{s.entry}
	}
	if err := t.lockSubtrees(ctx, s.place, virtual, advanceEpoch); err != nil {
		return metadata.Result{Err: err}
	}
	t.addCommands(replaced...)
	t.addCommands(metadata.Command{Op: metadata.Move, Path: s.path, To: to.toLocal(c.To), Across: true, MaxDepth: -1})
	result := t.commit(ctx)
	if result.Err != nil && !t.undecided {
		result.Err = t.targetError(c, to, result.Err)
		if result.Err != nil && !errors.As(result.Err, new(*staleMapError)) {
			result.Err = s.globalError(metadata.Command{Path: c.Path}, result.Err)
		}
	}
	return result
}

// leaveSource has the coordinator give up the entry; the commands make it what it is at a path
// of another server.
func (t *transaction) leaveSource(ctx context.Context, s source, sub metadata.Subtree, to string) ([]metadata.Command, error) {
	e := s.entry
	touch := metadata.Command{Op: metadata.Touch, Path: to, Time: e.Modified, MaxDepth: -1}
	made := metadata.Command{Op: metadata.Mkdir, Path: to, Mode: e.Mode, MaxDepth: -1}
	switch {
	case e.Kind == metadata.File:
		t.addCommands(metadata.Command{Op: metadata.Remove, Path: s.path, MaxDepth: -1})
		write := metadata.Command{Op: metadata.Write, Path: to, Mode: e.Mode, Data: s.data, Exclusive: true, MaxDepth: -1}
		return withMode(e, to, write, touch), nil
	case e.Kind == metadata.Virtual:
		t.addCommands(metadata.Command{Op: metadata.Rmdir, Path: s.path, Owner: e.Owner, MaxDepth: -1})
		e.Name = s.path
		at, ok := metadata.ParseSubtree(e.Owner)
		if !ok {
			return nil, &metadata.ElsewhereError{At: s.toGlobal(s.path), Owner: e.Owner}
		}
		return []metadata.Command{made, delegateCommand(to, at.NextEpoch())}, t.lockSubtrees(ctx, s.place, []metadata.Entry{e}, advanceEpoch)
	case e.Size == 0:
		t.addCommands(metadata.Command{Op: metadata.Rmdir, Path: s.path, MaxDepth: -1})
		return withMode(e, to, made, touch), nil
	}
	t.addCommands(metadata.Command{Op: metadata.Mkdir, Path: metadata.Subtrees, Parents: true, MaxDepth: -1},
		metadata.Command{Op: metadata.Move, Path: s.path, To: sub.Base(), Across: true, MaxDepth: -1})
	return []metadata.Command{made, delegateCommand(to, sub)}, t.lockSubtrees(ctx, s.place, s.virtual, advanceEpoch)
}

// withMode are commands that make an entry, with what gives it no permission bits at all:
// for those that make one, that is no mode.
func withMode(e metadata.Entry, path string, commands ...metadata.Command) []metadata.Command {
	if e.Mode == 0 {
		commands = append(commands, metadata.Command{Op: metadata.Chmod, Path: path, MaxDepth: -1})
	}
	return commands
}

func delegateCommand(path string, s metadata.Subtree) metadata.Command {
	return metadata.Command{Op: metadata.Delegate, Path: path, Owner: s.Owner(), Exclusive: true, MaxDepth: -1}
}

// replaceTarget returns the commands that remove what an entry is moved in place of, where that
// is asked for.
func (t *transaction) replaceTarget(ctx context.Context, c metadata.Command, s source, to place) ([]metadata.Command, error) {
	if !c.Replace {
		return nil, nil
	}
	path := to.toLocal(c.To)
	found := t.prepare(ctx, to.server, path, "")
	if found.Err != nil || len(found.Entries) == 0 {
		return nil, t.targetError(c, to, found.Err)
	}
	target, directory := found.Entries[0], s.entry.Kind != metadata.File
	about := func(err error) error { return &metadata.Error{Path: c.To, Err: err} }
	switch {
	case directory && target.Kind == metadata.File:
		return nil, about(metadata.ErrNotDirectory)
	case !directory && target.Kind != metadata.File:
		return nil, about(metadata.ErrIsDirectory)
	case target.Kind == metadata.File:
		return []metadata.Command{{Op: metadata.Remove, Path: path, MaxDepth: -1}}, nil
	case target.Kind == metadata.Directory && target.Size > 0:
		return nil, about(metadata.ErrNotEmpty)
	case target.Kind == metadata.Directory:
		return []metadata.Command{{Op: metadata.Rmdir, Path: path, MaxDepth: -1}}, nil
	}
	target.Name = path
	err := t.lockSubtrees(ctx, to, []metadata.Entry{target}, rmdirSubtree)
	if errors.Is(err, metadata.ErrNotEmpty) {
		err = about(metadata.ErrNotEmpty)
	}
	return []metadata.Command{{Op: metadata.Rmdir, Path: path, Owner: target.Owner, MaxDepth: -1}}, err
}

// targetError is an error of the server that an entry is moved to.
func (t *transaction) targetError(c metadata.Command, to place, err error) error {
	if err == nil {
		return nil
	}
	var e *metadata.ElsewhereError
	if errors.As(err, &e) && e.At == to.toLocal(c.To) {
		err = &metadata.Error{Path: e.At, Err: metadata.ErrExists}
	}
	found := t.r.translateError(to, c.To, err)
	if !errors.Is(err, metadata.ErrExists) {
		return found
	}
	return &staleMapError{found, func(ctx context.Context) error {
		// It may be a virtual directory that leads nowhere any more.
		there := t.r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.To, MaxDepth: -1}})[0]
		if errors.Is(there.Err, metadata.ErrNotFound) {
			return errAgain
		}
		return found
	}}
}
