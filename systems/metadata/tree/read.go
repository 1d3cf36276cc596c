package tree

import (
	"encoding/binary"
	"errors"
	"path"
	"strings"

	"skerry/systems/metadata"
)

func (t *Tree) list(c metadata.Command) metadata.Result {
	var w walk
	t.walkPath(c.Path, &w)
	if w.err != nil {
		return metadata.Result{Err: w.err}
	}
	if err := w.state.checkPassable(c.Path, len(c.Path)+1); err != nil {
		return metadata.Result{Err: err}
	}
	kids, limit := w.state.kids, c.PageSize()
	r := metadata.Result{Entries: make([]metadata.Entry, 0, min(kids.len(), limit))}
	kids.each(c.After, c.After == "", func(it item) bool {
		if len(r.Entries) == limit {
			r.Next = r.Entries[limit-1].Name
			return false
		}
		if c.Long {
			r.Entries = append(r.Entries, it.node.state.Load().entry(it.name, it.node.id))
		} else {
			r.Entries = append(r.Entries, metadata.Entry{Name: it.name, ID: it.node.id})
		}
		return true
	})
	if c.Across {
		if stamp := kids.stampOf(c.After, c.After == "", r.Next); stamp != 0 {
			r.Data = binary.LittleEndian.AppendUint64(nil, stamp)
		}
	}
	return r
}

func (t *Tree) stat(c metadata.Command) metadata.Result {
	var w walk
	t.walkPath(c.Path, &w)
	if w.err == nil && w.state.kind == metadata.Virtual {
		w.err = w.state.checkPassable(c.Path, len(c.Path)+1)
	}
	if w.err != nil {
		return metadata.Result{Err: w.err}
	}
	return metadata.Result{Entries: []metadata.Entry{w.state.entry(lastName(c.Path), w.node.id)}}
}

func lastName(p string) string {
	if p == "/" {
		return p
	}
	return p[strings.LastIndexByte(p, '/')+1:]
}

func (t *Tree) read(c metadata.Command) metadata.Result {
	var w walk
	t.walkPath(c.Path, &w)
	switch {
	case w.err != nil:
		return metadata.Result{Err: w.err}
	case w.state.kind == metadata.Virtual:
		return metadata.Result{Err: w.state.checkPassable(c.Path, len(c.Path)+1)}
	case w.state.kind != metadata.File:
		return failure(c.Path, metadata.ErrIsDirectory)
	}
	return metadata.Result{Data: []byte(w.state.content())}
}

// scanLimit bounds the entries that find examines for a page, and so the cost of a search with few matches.
const scanLimit = 100_000

type search struct {
	c       metadata.Command
	limit   int
	result  metadata.Result
	scanned int
	seen    string // last examined path
}

func (t *Tree) find(c metadata.Command) metadata.Result {
	var w walk
	t.walkPath(c.Path, &w)
	if w.err == nil && w.state.kind == metadata.Virtual {
		w.err = w.state.checkPassable(c.Path, len(c.Path)+1)
	}
	if w.err != nil {
		return metadata.Result{Err: w.err}
	}
	s := search{c: c, limit: c.PageSize()}
	after, resumed := "", false
	if c.After != "" && c.After != c.Path && metadata.Under(c.After, c.Path) {
		after, resumed = strings.TrimPrefix(c.After[len(c.Path):], "/"), true
	}
	if c.After == "" && !s.visit(c.Path, item{lastName(c.Path), w.node}) {
		return s.result
	}
	s.visitBelow(c.Path, w.state, after, resumed, 1)
	return s.result
}

// visitBelow visits entries below a directory, resumed after the relative path after. It returns false at a full page.
func (s *search) visitBelow(dir string, at *state, after string, resumed bool, depth int) bool {
	if s.c.MaxDepth >= 0 && depth > s.c.MaxDepth {
		return true
	}
	name, deeper, more := strings.Cut(after, "/")
	if resumed {
		n := at.kids.get(name)
		if n != nil && more && s.c.Across {
			// The rest of the path is on another server.
			if err := n.state.Load().checkPassable(metadata.Join(dir, name)+"/", len(metadata.Join(dir, name))+1); errors.Is(err,
				metadata.ErrElsewhere) {
				s.result = metadata.Result{Err: err}
				return false
			}
		}
		if n != nil && !s.visitBelow(metadata.Join(dir, name), n.state.Load(), deeper, more, depth+1) {
			return false
		}
	}
	return at.kids.each(name, !resumed, func(it item) bool {
		p := metadata.Join(dir, it.name)
		if s.c.Across && (p == metadata.Subtrees || p == metadata.Incoming) {
			return true // not part of the shared tree
		}
		return s.visit(p, it) && s.visitBelow(p, it.node.state.Load(), "", false, depth+1)
	})
}

func (s *search) visit(p string, it item) bool {
	if s.scanned == scanLimit || len(s.result.Entries) == s.limit {
		s.result.Next = s.seen
		return false
	}
	s.scanned++
	s.seen = p
	at := it.node.state.Load()
	if s.matches(it.name, at) {
		s.result.Entries = append(s.result.Entries, at.entry(p, it.node.id))
	}
	if s.c.Across && at.kind == metadata.Virtual {
		s.result.Next, s.result.Data = p, []byte(at.content())
		return false
	}
	return true
}

func (s *search) matches(name string, at *state) bool {
	virtual := s.c.Across && s.c.Kind == metadata.Directory && at.kind == metadata.Virtual
	if s.c.Kind != 0 && s.c.Kind != at.kind && !virtual {
		return false
	}
	ok, err := path.Match(s.c.Pattern, name)
	return s.c.Pattern == "" || ok && err == nil
}
