package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"skerry/systems/metadata"
)

// A directory that is hot by itself is parted: it is on several servers, each of which has the
// entries whose names' hash is its. A command about an entry is for one of them, as any command
// about a subtree is; what is about the directory itself asks all:
//
//	/hot ──► g1,g2,g3:/.subtrees/5f1c…     g1  a  d  k
//	                                       g2  b  c  m      ls: merged
//	                                       g3  e  f  z
//
// Its parts are made, given other servers and merged by delegate, which has every part take the
// place of what was before at one moment, and removed and moved with all others, in transactions.

// completeResult is the answer to a command, of which a server has given that about its part.
func (r *Router) completeResult(ctx context.Context, c metadata.Command, at place, first metadata.Result) metadata.Result {
	a := r.area(c.Path)
	if len(a.parts) < 2 || a.top != c.Path || at.base != a.base || first.Err != nil {
		return first
	}
	switch c.Op {
	case metadata.List:
		return r.listParts(ctx, c, a)
	case metadata.Stat, metadata.Chmod, metadata.Touch:
		return r.statParts(ctx, c, a, first)
	}
	return first
}

// nextPart goes on to the next part of a directory that is searched; false: there is none, or what is
// looked for is in one part.
func (r *Router) nextPart(c metadata.Command, at *place) bool {
	a := r.area(at.top)
	i := slices.Index(a.parts, at.server)
	if a.base != at.base || i < 0 || i+1 >= len(a.parts) || at.top != c.Path && metadata.Under(c.Path, at.top) {
		return false
	}
	at.server = a.parts[i+1]
	return true
}

// statParts is what is known about a parted directory: how many entries are in all parts, and the latest
// change. The first part tells all else. Each part is asked at a moment of its own.
func (r *Router) statParts(ctx context.Context, c metadata.Command, a area, first metadata.Result) metadata.Result {
	answers := r.sendToParts(ctx, c, a.places()[1:])
	for _, answer := range answers {
		switch {
		case errors.Is(answer.Err, metadata.ErrNotFound):
			return r.redo(ctx, c, a)
		case answer.Err != nil:
			return answer
		}
		first.Entries[0].Size += answer.Entries[0].Size
		first.Entries[0].Modified = max(first.Entries[0].Modified, answer.Entries[0].Modified)
	}
	return first
}

// redo answers a command once more, where a part is not there any more: the directory has other
// parts now, or none.
func (r *Router) redo(ctx context.Context, c metadata.Command, a area) metadata.Result {
	if ctx.Err() != nil {
		return failure(c.Path, metadata.ErrUnavailable)
	}
	r.known.forget(a.place)
	return r.route(ctx, []metadata.Command{c})[0]
}

// sendToParts asks each part for the same.
func (r *Router) sendToParts(ctx context.Context, c metadata.Command, parts []place) []metadata.Result {
	answers := make([]metadata.Result, len(parts))
	servers := make([]string, len(parts))
	for i, p := range parts {
		servers[i] = p.server
	}
	_ = r.eachServer(servers, func(i int, server string) error {
		answers[i] = parts[i].globalResult(c, r.sendOne(ctx, server, parts[i].localCommand(c)))
		return nil
	})
	return answers
}

// pageAttempts is how often a page is looked at before changes are made to wait for it.
const pageAttempts = 4

// listParts is a page of a parted directory at one moment. The parts answer one after the other, so
// that a page may show what was never there together:
//
//  1. g1 lists its part. A client creates x on g1, then y on g2.
//  2. g2 lists its part: the page has y, and not x, which was there before it.
//
// So the parts are asked twice. Where none has changed what is on the page in between, all of it was
// there when the first answers had come. Each part stamps what it has listed, since it could look
// the same and have been another in between. Where changes are that fast, they wait, for three
// exchanges.
func (r *Router) listParts(ctx context.Context, c metadata.Command, a area) metadata.Result {
	c.Across = true
	var before []metadata.Result
	for range pageAttempts {
		pages := r.sendToParts(ctx, c, a.places())
		if page, wrong := mergePages(c, pages); wrong || samePages(before, pages) {
			return r.checkedPage(ctx, c, a, page)
		}
		before = pages
	}
	held := r.transact(ctx, "", func(ctx context.Context, t *transaction) metadata.Result {
		for _, server := range slices.Sorted(slices.Values(a.parts)) {
			if found := t.lockPath(ctx, server, a.base); found.Err != nil {
				return found
			}
		}
		page, _ := mergePages(c, r.sendToParts(ctx, c, a.places()))
		t.abort(ctx)
		return page
	})
	return r.checkedPage(ctx, c, a, held)
}

// lockPath locks what is at a path of a server, which decides for itself: reads there do not wait for
// what another one decides.
func (t *transaction) lockPath(ctx context.Context, server, path string) metadata.Result {
	coordinator := t.coordinator
	defer func() { t.coordinator = coordinator }()
	if t.coordinator = server; server != coordinator && !slices.Contains(t.others, server) {
		t.others = append(t.others, server)
	}
	found := t.prepare(ctx, server, path, "")
	if found.Err == nil && len(found.Entries) == 0 {
		found.Err = &metadata.Error{Path: path, Err: metadata.ErrNotFound}
	}
	return found
}

// checkedPage is an answer about all parts, or a new one where one of them has gone.
func (r *Router) checkedPage(ctx context.Context, c metadata.Command, a area, checkedPage metadata.Result) metadata.Result {
	if errors.Is(checkedPage.Err, metadata.ErrNotFound) {
		return r.redo(ctx, c, a)
	}
	return checkedPage
}

// samePages tells whether the parts' pages are those of before.
func samePages(before, pages []metadata.Result) bool {
	for i, p := range pages {
		if before == nil || len(p.Data) == 0 || !bytes.Equal(p.Data, before[i].Data) {
			return false
		}
	}
	return true
}

// mergePages is a page of all parts' pages; wrong says that it is a part's error.
func mergePages(c metadata.Command, pages []metadata.Result) (page metadata.Result, wrong bool) {
	more := false
	for _, p := range pages {
		if p.Err != nil {
			return metadata.Result{Err: p.Err}, true
		}
		page.Entries, more = append(page.Entries, p.Entries...), more || p.Next != ""
	}
	slices.SortFunc(page.Entries, func(a, b metadata.Entry) int { return cmp.Compare(a.Name, b.Name) })
	if limit := c.PageSize(); len(page.Entries) > limit {
		page.Entries, more = page.Entries[:limit], true
	}
	if more {
		page.Next = page.Entries[len(page.Entries)-1].Name
	}
	return page, false
}

// rmdirParts removes a parted directory, all of whose parts are empty, at one moment.
func (r *Router) rmdirParts(ctx context.Context, c metadata.Command) metadata.Result {
	other := false // it is not parted any more
	result := r.transact(ctx, c.Identity, func(ctx context.Context, t *transaction) metadata.Result {
		s, err := t.lockSource(ctx, c.Path, r.parentPlace(c.Path), "")
		if other = err == nil && !strings.Contains(s.entry.Owner, ","); other {
			return failure(c.Path, metadata.ErrNotFound)
		}
		if err != nil {
			return metadata.Result{Err: err}
		}
		s.entry.Name = s.path
		if err := t.lockSubtrees(ctx, s.place, []metadata.Entry{s.entry}, rmdirSubtree); errors.Is(err, metadata.ErrNotEmpty) {
			return failure(c.Path, metadata.ErrNotEmpty)
		} else if err != nil {
			return metadata.Result{Err: err}
		}
		t.addCommands(metadata.Command{Op: metadata.Rmdir, Path: s.path, Owner: s.entry.Owner, MaxDepth: -1})
		return t.commit(ctx)
	})
	if r.known.forget(place{top: c.Path}); other && ctx.Err() == nil {
		return r.route(ctx, []metadata.Command{c})[0]
	}
	return result
}
