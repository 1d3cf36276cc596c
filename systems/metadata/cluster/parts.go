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

// A single hot directory can be split into parts on several servers. Each server has the entries that PartIndex assigns
// to it. A command on an entry goes to one server, like any command on a subtree. A command on the directory itself goes
// to all:
//
//	/hot ──► g1,g2,g3:/.subtrees/5f1c…     g1  a  d  k
//	                                       g2  b  c  m      ls: merged
//	                                       g3  e  f  z
//
// delegate creates, moves and merges parts; the new parts replace the old ones at one moment. Parts are removed and
// renamed together, in transactions.

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

// nextPart moves at to the next part to search. It returns false if there is none.
func (r *Router) nextPart(c metadata.Command, at *place) bool {
	a := r.area(at.top)
	i := slices.Index(a.parts, at.server)
	if a.base != at.base || i < 0 || i+1 >= len(a.parts) || at.top != c.Path && metadata.Under(c.Path, at.top) {
		return false
	}
	at.server = a.parts[i+1]
	return true
}

// statParts returns the attributes of a split directory: the total number of entries and the latest change. Other
// attributes are the first part's. The parts answer at different moments.
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

// redo repeats a command after a part has disappeared: the directory now has other parts or none.
func (r *Router) redo(ctx context.Context, c metadata.Command, a area) metadata.Result {
	if ctx.Err() != nil {
		return failure(c.Path, metadata.ErrUnavailable)
	}
	r.known.forget(a.place)
	return r.route(ctx, []metadata.Command{c})[0]
}

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

// pageAttempts is the number of attempts at a page before listParts blocks changes.
const pageAttempts = 4

// listParts returns a page of a split directory at one moment. The parts answer at different moments, so that simply
// merged answers could show a state that never existed:
//
//  1. g1 lists its part. A client creates x on g1, then y on g2.
//  2. g2 lists its part. The page has y but not x, which existed before y.
//
// The parts are therefore asked twice. If none has changed in between, all answers were valid when the first ones had all
// arrived. A part's stamp detects changes that were reverted in between. If changes are too fast, they wait for three
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

// lockPath locks a path of a server that decides itself: reads there do not wait for another server's decision.
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

func (r *Router) checkedPage(ctx context.Context, c metadata.Command, a area, checkedPage metadata.Result) metadata.Result {
	if errors.Is(checkedPage.Err, metadata.ErrNotFound) {
		return r.redo(ctx, c, a)
	}
	return checkedPage
}

func samePages(before, pages []metadata.Result) bool {
	for i, p := range pages {
		if before == nil || len(p.Data) == 0 || !bytes.Equal(p.Data, before[i].Data) {
			return false
		}
	}
	return true
}

// mergePages merges the pages of all parts. wrong means that the result is the error of a part.
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

func (r *Router) rmdirParts(ctx context.Context, c metadata.Command) metadata.Result {
	other := false // no longer split
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
