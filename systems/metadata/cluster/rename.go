package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"skerry/systems/metadata"
)

func randomToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// delegate moves an empty directory to another server, or splits it over several. It creates directories there, and then
// makes the directory virtual at one moment, if it is still empty. A crash between the two leaves directories to which
// nothing leads.
func (r *Router) delegate(ctx context.Context, c metadata.Command) metadata.Result {
	targets := slices.Sorted(strings.SplitSeq(c.Owner, ","))
	for i, target := range targets {
		if r.servers.Service[target] == nil {
			return failure(c.Path, fmt.Errorf("%w owner: %w: %s", metadata.ErrInvalid, ErrServer, metadata.Quote(target)))
		}
		if i > 0 && target == targets[i-1] {
			return failure(c.Path, fmt.Errorf("%w owner: %s is listed twice", metadata.ErrInvalid, target))
		}
	}
	c.Owner = strings.Join(targets, ",")
	found := r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path}})[0]
	switch {
	case found.Err != nil:
		return found
	case found.Entries[0].Kind != metadata.Directory:
		return failure(c.Path, metadata.ErrNotDirectory)
	case found.Entries[0].Size > 0:
		return r.migrate(ctx, c)
	}
	sub := metadata.Subtree{Server: c.Owner, ID: r.token()}
	base := sub.Base()
	if sub := sub.NextEpoch(); len(sub.Owner()) > metadata.MaxName {
		return failure(c.Path, fmt.Errorf("%w owner: names of %d servers are too long together", metadata.ErrInvalid, len(targets)))
	}
	for _, target := range targets {
		if made := r.sendOne(ctx, target, metadata.Command{Op: metadata.Mkdir, Path: base, Parents: true,
			Mode: found.Entries[0].Mode}); made.Err != nil {
			return metadata.Result{Err: fmt.Errorf("creating the directory on %s: %w", target, made.Err)}
		}
	}
	c.Owner, c.Exclusive = sub.Owner(), true
	at := r.commandPlace(c)
	result := r.followResult(ctx, c, at, r.sendOne(ctx, at.server, at.localCommand(c)))
	var e *metadata.ElsewhereError
	filled := errors.Is(result.Err, metadata.ErrNotEmpty) || errors.As(result.Err, &e) && e.At == c.Path
	if filled {
		c.Owner = sub.Server
		result = r.migrate(ctx, c)
	}
	if filled || result.Err != nil && !errors.Is(result.Err, metadata.ErrUnavailable) {
		// Nothing leads there. If the removal fails, the leftover is invisible.
		_ = r.parallel(targets, func(target string) error {
			return r.sendOne(ctx, target, metadata.Command{Op: metadata.Rmdir, Path: base}).Err
		})
	}
	return result
}

func (r *Router) move(ctx context.Context, c metadata.Command) metadata.Result {
	if c.Path == c.To { // nothing to move
		return r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path, MaxDepth: -1}})[0]
	}
	for hop := range maxHops {
		from, to := r.parentPlace(c.Path), r.parentPlace(c.To)
		if from.server != to.server {
			return r.rename(ctx, c)
		}
		local := c
		local.Path, local.To = from.toLocal(c.Path), to.toLocal(c.To)
		if hop > 0 {
			local.Identity = metadata.RetryIdentity(c.Identity, hop)
		}
		result := r.sendOne(ctx, from.server, local)
		var e *metadata.ElsewhereError
		switch {
		case errors.As(result.Err, &e) && r.learnAncestor(from, local.Path, e), e != nil && r.learnAncestor(to, local.To, e):
			continue
		case e != nil:
			return r.rename(ctx, c)
		case !errors.Is(result.Err, metadata.ErrNotFound):
			return r.moveResult(c, from, to, result)
		}
		gone, err := r.removeDangling(ctx, from)
		if err == nil && !gone {
			gone, err = r.removeDangling(ctx, to)
		}
		switch {
		case err != nil:
			return metadata.Result{Err: err}
		case !gone:
			return r.moveResult(c, from, to, result)
		}
	}
	return loopError(c.Path)
}

func (r *Router) learnAncestor(at place, path string, e *metadata.ElsewhereError) bool {
	return e.At != path && metadata.Under(path, e.At) && r.learnArea(at.toGlobal(e.At), e.Owner)
}

func (r *Router) moveResult(c metadata.Command, from, to place, result metadata.Result) metadata.Result {
	err := from.globalError(c, result.Err)
	if err == result.Err { // perhaps about the new path
		about := c
		about.Path = c.To
		err = to.globalError(about, result.Err)
	}
	result.Err = err
	return result
}

// rename moves entries between servers, or a directory with subtrees on several servers. A file is copied. A directory
// stays on its server as a subtree, to which a new virtual directory leads.
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

// leaveSource removes the entry from the coordinator. It returns commands that create the entry on another server.
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

// withMode adds a chmod for mode 0, which creating commands cannot express.
func withMode(e metadata.Entry, path string, commands ...metadata.Command) []metadata.Command {
	if e.Mode == 0 {
		commands = append(commands, metadata.Command{Op: metadata.Chmod, Path: path, MaxDepth: -1})
	}
	return commands
}

func delegateCommand(path string, s metadata.Subtree) metadata.Command {
	return metadata.Command{Op: metadata.Delegate, Path: path, Owner: s.Owner(), Exclusive: true, MaxDepth: -1}
}

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
		// The target may be a virtual directory that leads nowhere.
		there := t.r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.To, MaxDepth: -1}})[0]
		if errors.Is(there.Err, metadata.ErrNotFound) {
			return errAgain
		}
		return found
	}}
}
