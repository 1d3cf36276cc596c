package cluster

import (
	"context"
	"errors"
	"fmt"

	"skerry/systems/metadata"
)

// followResult goes on from what a server answered to a command: to where a virtual directory
// leads, and anew where a subtree is gone.
func (r *Router) followResult(ctx context.Context, c metadata.Command, at place, result metadata.Result) metadata.Result {
	for hop := range maxHops {
		e := virtualIn(at.localCommand(c), result)
		switch {
		case e == nil && errors.Is(result.Err, metadata.ErrExists) && targetsEntry(c):
			// What is in the way may be a virtual directory whose subtree has just gone.
			if there := r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path}})[0]; !errors.Is(there.Err, metadata.ErrNotFound) {
				return at.globalResult(c, result)
			}
		case e == nil && !at.mayBeGone(result.Err):
			return r.completeResult(ctx, c, at, at.globalResult(c, result))
		case e == nil:
			gone, err := r.removeDangling(ctx, at)
			if err != nil {
				return metadata.Result{Err: err}
			}
			if !gone {
				return at.globalResult(c, result)
			}
		default:
			top := at.toGlobal(e.At)
			if !metadata.Under(c.Path, top) { // a part of it is elsewhere
				if c.Op == metadata.Remove && c.Recursive {
					return r.removeAll(ctx, c)
				}
				return elsewhereResult(top, e.Owner)
			}
			if top == c.Path && targetsEntry(c) {
				return r.atVirtual(ctx, c, at, e)
			}
			if !r.learnArea(top, e.Owner) {
				return elsewhereResult(top, e.Owner)
			}
		}
		at = r.commandPlace(c)
		next := at.localCommand(c)
		next.Identity = metadata.RetryIdentity(c.Identity, hop+1)
		result = r.sendOne(ctx, at.server, next)
	}
	return loopError(c.Path)
}

// virtualIn is the virtual directory that an answer leads to, nil where it is the answer.
func virtualIn(local metadata.Command, r metadata.Result) *metadata.ElsewhereError {
	var e *metadata.ElsewhereError
	if errors.As(r.Err, &e) {
		return e
	}
	if r.Err == nil && local.Op == metadata.Stat && len(r.Entries) == 1 && r.Entries[0].Kind == metadata.Virtual {
		return &metadata.ElsewhereError{At: local.Path, Owner: r.Entries[0].Owner}
	}
	return nil
}

// learnArea notes where a subtree is; it is false where that server is not known.
func (r *Router) learnArea(top, text string) bool {
	a, ok := r.parseArea(top, text)
	if ok {
		r.known.add(a)
	}
	return ok
}

// atVirtual answers a command about the entry that a virtual directory is.
func (r *Router) atVirtual(ctx context.Context, c metadata.Command, at place, e *metadata.ElsewhereError) metadata.Result {
	switch {
	case c.Op == metadata.Rmdir:
		return r.rmdir(ctx, c, at, e)
	case c.Op == metadata.Write, c.Op == metadata.Remove && !c.Recursive:
		return failure(c.Path, metadata.ErrIsDirectory)
	case c.Op == metadata.Remove:
		return r.removeAll(ctx, c)
	}
	return elsewhereResult(c.Path, e.Owner)
}

// rmdir removes a subtree that is empty. It is gone, at one moment, when its server has
// removed its directory; the virtual one, which then leads nowhere, goes behind it. Where
// that does not come about, the server died, say, whoever meets it next sees to it
// (buried).
func (r *Router) rmdir(ctx context.Context, c metadata.Command, at place, e *metadata.ElsewhereError) metadata.Result {
	a, ok := r.parseArea(c.Path, e.Owner)
	switch {
	case !ok:
		return elsewhereResult(c.Path, e.Owner)
	case len(a.parts) > 1:
		return r.rmdirParts(ctx, c)
	}
	sub := a.place
	removed := r.sendOne(ctx, sub.server, metadata.Command{Op: metadata.Rmdir, Path: sub.base, Identity: c.Identity})
	if removed.Err != nil && !errors.Is(removed.Err, metadata.ErrNotFound) {
		return sub.globalResult(c, removed)
	}
	unhung := r.sendOne(ctx, at.server, metadata.Command{Op: metadata.Rmdir, Path: e.At, Owner: e.Owner})
	if errors.Is(unhung.Err, metadata.ErrUnavailable) {
		return at.globalResult(c, unhung)
	}
	r.known.forget(sub)
	if removed.Err != nil && errors.Is(unhung.Err, metadata.ErrElsewhere) {
		return r.Do(ctx, []metadata.Command{c})[0] // it has moved to another server meanwhile
	}
	return sub.globalResult(c, removed) // another one may have removed it, or unhung it
}

// removeDangling tells whether a subtree is gone. The virtual directory that led there is gone
// then, too, if it still did, and forgotten.
func (r *Router) removeDangling(ctx context.Context, p place) (bool, error) {
	if p.top == "/" {
		return false, nil
	}
	found := r.sendOne(ctx, p.server, metadata.Command{Op: metadata.Stat, Path: p.base})
	if !errors.Is(found.Err, metadata.ErrNotFound) {
		if errors.Is(found.Err, metadata.ErrUnavailable) {
			return false, found.Err
		}
		return false, nil
	}
	above := r.parentPlace(p.top)
	unhung := r.sendOne(ctx, above.server, metadata.Command{Op: metadata.Rmdir, Path: above.toLocal(p.top), Owner: ownerText(p.server, p.base)})
	if errors.Is(unhung.Err, metadata.ErrUnavailable) {
		return false, unhung.Err
	}
	r.known.forget(p)
	return true, nil
}

func elsewhereResult(top, owner string) metadata.Result {
	return metadata.Result{Err: &metadata.ElsewhereError{At: top, Owner: owner}}
}

func loopError(path string) metadata.Result {
	return failure(path, fmt.Errorf("%w: %w", metadata.ErrUnavailable, ErrCircle))
}
