package cluster

import (
	"context"
	"errors"
	"strings"

	"skerry/systems/metadata"
)

// find is a page of find over all servers that have a part of the subtree. Each is asked up
// to the first virtual directory; the next page begins behind the last path that was seen,
// wherever that is.
func (r *Router) find(ctx context.Context, c metadata.Command) metadata.Result {
	first := r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: c.Path, MaxDepth: -1}})[0]
	if first.Err != nil {
		return first
	}
	at, seen := r.placeOf(c.Path), c.After
	if seen != "" && metadata.Under(seen, c.Path) {
		// The map on the way there is learnt. What was seen may be gone.
		_ = r.Do(ctx, []metadata.Command{{Op: metadata.Stat, Path: seen, MaxDepth: -1}})
		at = r.placeOf(seen)
	}
	var page metadata.Result
	last := seen // of what was seen: seen itself may be a directory that is done with
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
			part = metadata.Result{} // it went meanwhile
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
			seen = at.toGlobal(part.Next) // nothing below it is looked for, or can be
		case part.Next != "":
			page.Next = at.toGlobal(part.Next)
			return page
		case r.nextPart(c, &at):
			seen = at.top // the part's own entry was seen, in the first one
		case metadata.Under(c.Path, at.top):
			return page
		default: // the rest of the directory that the subtree is in
			seen = at.top
			at = r.parentPlace(seen)
		}
	}
	page.Next = last
	return page
}

// partialFind is what one server is asked for: what comes behind the path seen, at most left
// entries.
func partialFind(c metadata.Command, at place, seen string, left int) metadata.Command {
	local := c
	local.Across, local.Limit, local.After = true, left, ""
	local.Path = at.toLocal(c.Path)
	if metadata.Under(at.top, c.Path) && at.top != c.Path {
		local.Path, local.After = at.base, at.base // its own entry was seen from outside
		if c.MaxDepth >= 0 {
			local.MaxDepth -= countLevels(at.top) - countLevels(c.Path)
		}
	}
	if seen != "" && metadata.Under(seen, at.top) {
		local.After = at.toLocal(seen)
	}
	return local
}

// reachesBelow tells whether anything below a path is looked for.
func reachesBelow(c metadata.Command, path string) bool {
	return c.MaxDepth < 0 || countLevels(path)-countLevels(c.Path) < c.MaxDepth
}

func countLevels(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}
