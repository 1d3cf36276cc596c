package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry/systems/metadata"
)

// followResult continues to the server of a virtual directory, or to the current server of a moved subtree.
func (r *Router) followResult(ctx context.Context, c metadata.Command, at place, result metadata.Result) metadata.Result {
	for hop := range maxHops {
		e := virtualIn(at.localCommand(c), result)
		switch {
		case e == nil && errors.Is(result.Err, metadata.ErrExists) && targetsEntry(c):
			// The existing entry may be a virtual directory whose subtree has just been removed.
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
			if !metadata.Under(c.Path, top) { // a part below c.Path is on another server
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

// virtualIn returns the virtual directory that an answer points to, nil if the answer is final.
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

func (r *Router) learnArea(top, text string) bool {
	a, ok := r.parseArea(top, text)
	if ok {
		r.known.add(a)
	}
	return ok
}

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

// rmdir removes an empty subtree. The removal takes effect when the subtree's server removes the directory. The virtual
// directory, which then leads nowhere, is removed afterwards. If that fails, for example because the server died,
// removeDangling does it when a router next meets the virtual directory.
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
		return r.Do(ctx, []metadata.Command{c})[0] // the subtree has moved to another server
	}
	return sub.globalResult(c, removed) // another router may have removed it
}

// removeDangling reports whether a subtree is gone. It then removes the virtual directory and forgets the location.
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
	unhung := r.sendOne(ctx, above.server, metadata.Command{Op: metadata.Rmdir, Path: above.toLocal(p.top),
		Owner: ownerText(p.server, p.base)})
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

// find returns a page of find over all servers that hold parts of the subtree. Each server searches up to its first
// virtual directory. The next page begins after the last visited path, on whichever server that is.
func (r *Router) find(ctx context.Context, c metadata.Command) metadata.Result {
	first := r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path, MaxDepth: -1}})[0]
	if first.Err != nil {
		return first
	}
	at, seen := r.placeOf(c.Path), c.After
	if seen != "" && metadata.Under(seen, c.Path) {
		// Stat teaches the router the map on the way. The path itself may no longer exist.
		_ = r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: seen, MaxDepth: -1}})
		at = r.placeOf(seen)
	}
	var page metadata.Result
	last := seen // last visited path; seen itself may be a finished directory
	for range metadata.MaxLimit {
		left := c.PageSize() - len(page.Entries)
		if left == 0 {
			page.Next = last
			return page
		}
		part := r.sendOne(ctx, at.server, partialFind(c, at, seen, left))
		var e *metadata.ElsewhereError
		switch {
		case errors.As(part.Err, &e) && metadata.Under(at.toGlobal(e.At), c.Path) && r.learnArea(at.toGlobal(e.At), e.Owner):
			at = r.placeOf(at.toGlobal(e.At))
			continue
		case errors.Is(part.Err, metadata.ErrNotFound) && at.top != c.Path && metadata.Under(at.top, c.Path):
			part = metadata.Result{} // the subtree was removed meanwhile
		case part.Err != nil:
			return metadata.Result{Err: at.globalError(c, part.Err)}
		}
		for _, found := range part.Entries {
			found.Name = at.toGlobal(found.Name)
			page.Entries, last = append(page.Entries, found), found.Name
		}
		if part.Next != "" {
			last = at.toGlobal(part.Next)
		}
		switch {
		case len(part.Data) > 0 && r.learnArea(at.toGlobal(part.Next), string(part.Data)) && reachesBelow(c, at.toGlobal(part.Next)):
			seen = at.toGlobal(part.Next)
			at = r.placeOf(seen)
		case len(part.Data) > 0:
			seen = at.toGlobal(part.Next) // nothing to search below it
		case part.Next != "":
			page.Next = at.toGlobal(part.Next)
			return page
		case r.nextPart(c, &at):
			seen = at.top // the first part returned the part's own entry
		case metadata.Under(c.Path, at.top):
			return page
		default: // the rest of the directory above the subtree
			seen = at.top
			at = r.parentPlace(seen)
		}
	}
	page.Next = last
	return page
}

func partialFind(c metadata.Command, at place, seen string, left int) metadata.Command {
	local := c
	local.Across, local.Limit, local.After = true, left, ""
	local.Path = at.toLocal(c.Path)
	if metadata.Under(at.top, c.Path) && at.top != c.Path {
		local.Path, local.After = at.base, at.base // the server above returned its own entry
		if c.MaxDepth >= 0 {
			local.MaxDepth -= countLevels(at.top) - countLevels(c.Path)
		}
	}
	if seen != "" && metadata.Under(seen, at.top) {
		local.After = at.toLocal(seen)
	}
	return local
}

func reachesBelow(c metadata.Command, path string) bool {
	return c.MaxDepth < 0 || countLevels(path)-countLevels(c.Path) < c.MaxDepth
}

func countLevels(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}
