package cluster

import (
	"context"
	"errors"
	"fmt"

	"skerry/systems/metadata"
)

// follow goes on from what a server answered to a command: to where a virtual directory
// leads, and anew where a subtree is gone.
func (r *Router) follow(ctx context.Context, c metadata.Command, at place, result metadata.Result) metadata.Result {
	for hop := range maxHops {
		e := met(at.local(c), result)
		switch {
		case e == nil && errors.Is(result.Err, metadata.ErrExists) && ofEntry(c):
			// What is in the way may be a virtual directory whose subtree has just gone.
			if there := r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path}})[0]; !errors.Is(there.Err, metadata.ErrNotFound) {
				return at.global(c, result)
			}
		case e == nil && !at.gone(result.Err):
			return r.whole(ctx, c, at, at.global(c, result))
		case e == nil:
			gone, err := r.buried(ctx, at)
			if err != nil {
				return metadata.Result{Err: err}
			}
			if !gone {
				return at.global(c, result)
			}
		default:
			top := at.out(e.At)
			if !metadata.Under(c.Path, top) { // a part of it is elsewhere
				if c.Op == metadata.Remove && c.Recursive {
					return r.removeAll(ctx, c)
				}
				return elsewhere(top, e.Owner)
			}
			if top == c.Path && ofEntry(c) {
				return r.atVirtual(ctx, c, at, e)
			}
			if !r.learn(top, e.Owner) {
				return elsewhere(top, e.Owner)
			}
		}
		at = r.place(c)
		next := at.local(c)
		next.Identity = metadata.NextTry(c.Identity, hop+1)
		result = r.askOne(ctx, at.server, next)
	}
	return circle(c.Path)
}

// met is the virtual directory that an answer leads to, nil where it is the answer.
func met(local metadata.Command, r metadata.Result) *metadata.Elsewhere {
	var e *metadata.Elsewhere
	if errors.As(r.Err, &e) {
		return e
	}
	if r.Err == nil && local.Op == metadata.Stat && len(r.Entries) == 1 && r.Entries[0].Kind == metadata.Virtual {
		return &metadata.Elsewhere{At: local.Path, Owner: r.Entries[0].Owner}
	}
	return nil
}

// learn notes where a subtree is; it is false where that server is not known.
func (r *Router) learn(top, text string) bool {
	a, ok := r.areaOf(top, text)
	if ok {
		r.known.add(a)
	}
	return ok
}

// atVirtual answers a command about the entry that a virtual directory is.
func (r *Router) atVirtual(ctx context.Context, c metadata.Command, at place, e *metadata.Elsewhere) metadata.Result {
	switch {
	case c.Op == metadata.Rmdir:
		return r.rmdir(ctx, c, at, e)
	case c.Op == metadata.Write, c.Op == metadata.Remove && !c.Recursive:
		return failed(c.Path, metadata.ErrIsDirectory)
	case c.Op == metadata.Remove:
		return r.removeAll(ctx, c)
	}
	return elsewhere(c.Path, e.Owner)
}

// rmdir removes a subtree that is empty. It is gone, at one moment, when its server has
// removed its directory; the virtual one, which then leads nowhere, goes behind it. Where
// that does not come about, the server died, say, whoever meets it next sees to it
// (buried).
func (r *Router) rmdir(ctx context.Context, c metadata.Command, at place, e *metadata.Elsewhere) metadata.Result {
	a, ok := r.areaOf(c.Path, e.Owner)
	switch {
	case !ok:
		return elsewhere(c.Path, e.Owner)
	case len(a.parts) > 1:
		return r.rmdirParts(ctx, c)
	}
	sub := a.place
	removed := r.askOne(ctx, sub.server, metadata.Command{Op: metadata.Rmdir, Path: sub.base, Identity: c.Identity})
	if removed.Err != nil && !errors.Is(removed.Err, metadata.ErrNotFound) {
		return sub.global(c, removed)
	}
	unhung := r.askOne(ctx, at.server, metadata.Command{Op: metadata.Rmdir, Path: e.At, Owner: e.Owner})
	if errors.Is(unhung.Err, metadata.ErrUnavailable) {
		return at.global(c, unhung)
	}
	r.known.forget(sub)
	if removed.Err != nil && errors.Is(unhung.Err, metadata.ErrElsewhere) {
		return r.Do(ctx, []metadata.Command{c})[0] // it has moved to another server meanwhile
	}
	return sub.global(c, removed) // another one may have removed it, or unhung it
}

// buried tells whether a subtree is gone. The virtual directory that led there is gone
// then, too, if it still did, and forgotten.
func (r *Router) buried(ctx context.Context, p place) (bool, error) {
	if p.top == "/" {
		return false, nil
	}
	found := r.askOne(ctx, p.server, metadata.Command{Op: metadata.Stat, Path: p.base})
	if !errors.Is(found.Err, metadata.ErrNotFound) {
		if errors.Is(found.Err, metadata.ErrUnavailable) {
			return false, found.Err
		}
		return false, nil
	}
	above := r.parent(p.top)
	unhung := r.askOne(ctx, above.server, metadata.Command{Op: metadata.Rmdir, Path: above.in(p.top), Owner: owner(p.server, p.base)})
	if errors.Is(unhung.Err, metadata.ErrUnavailable) {
		return false, unhung.Err
	}
	r.known.forget(p)
	return true, nil
}

func elsewhere(top, owner string) metadata.Result {
	return metadata.Result{Err: &metadata.Elsewhere{At: top, Owner: owner}}
}

func circle(path string) metadata.Result {
	return failed(path, fmt.Errorf("%w: %w", metadata.ErrUnavailable, ErrCircle))
}
