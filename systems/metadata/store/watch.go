package store

import (
	"fmt"
	"maps"
	"slices"

	"skerry/systems/metadata"
)

// watch records the changes in a directory while a router copies it to another server. The machine's methods own it.
type watch struct {
	path    string
	since   uint64          // log entry that began or renewed it
	lease   int64           // ns
	expires int64           // as in txnPart
	changed map[string]bool // by path; true: entries below it may have changed as well
	bytes   int             // size of the paths
	lost    bool            // the directory moved, or too much changed
}

const (
	maxChanged      = 1 << 16
	maxChangedBytes = 16 << 20
)

func (s *State) applyChange(c metadata.Command) metadata.Result {
	r := s.Tree().Do(c)
	if len(s.watches) > 0 && r.Err == nil {
		s.noteChange(c)
	}
	return r
}

func (s *State) noteChange(c metadata.Command) {
	for _, w := range s.watches {
		w.note(c.Path, removesSubtree(c))
		if c.Op == metadata.Move {
			w.note(c.To, true)
		}
		if c.Op == metadata.Mkdir && c.Parents {
			for dir, _ := metadata.Split(c.Path); metadata.Under(dir, w.path) && dir != w.path; dir, _ = metadata.Split(dir) {
				w.note(dir, false)
			}
		}
	}
}

func (w *watch) note(path string, deep bool) {
	switch {
	case w.lost:
	case metadata.Under(path, w.path) && !(deep && path == w.path):
		if _, there := w.changed[path]; !there {
			w.bytes += len(path)
		}
		w.changed[path] = w.changed[path] || deep
		if len(w.changed) > maxChanged || w.bytes > maxChangedBytes {
			w.markLost()
		}
	case deep && metadata.Under(w.path, path):
		w.markLost()
	}
}

func (w *watch) markLost() { w.lost, w.changed = true, nil }

// watchDirectory applies a step that begins a watch or returns its recorded changes.
func (s *State) watchDirectory(c metadata.Command, step metadata.Step) metadata.Result {
	w := s.watches[step.Txn]
	switch {
	case step.First:
		info, err := s.describePath(c.Path)
		if err != nil {
			return metadata.Result{Err: err}
		}
		w = &watch{path: c.Path, changed: make(map[string]bool)}
		s.watches[step.Txn] = w
		s.renewWatch(w, c, step)
		return info
	case w == nil || w.lost:
		delete(s.watches, step.Txn)
		s.setParts(s.locks.Load().txns)
		return metadata.Result{Err: fmt.Errorf("%w: the directory has moved, or too much changed in it", metadata.ErrAborted)}
	}
	var text []byte
	for _, path := range slices.Sorted(maps.Keys(w.changed)) {
		text = metadata.AppendChange(text, path, w.changed[path])
	}
	w.changed, w.bytes = make(map[string]bool), 0
	s.renewWatch(w, c, step)
	return metadata.Result{Data: text}
}

func (s *State) renewWatch(w *watch, c metadata.Command, step metadata.Step) {
	w.since, w.lease, w.expires = s.index, step.Lease, c.Time+step.Lease
	s.setParts(s.locks.Load().txns)
}

func (s *State) exportWatches() (parts []*txnPart) {
	for _, name := range slices.Sorted(maps.Keys(s.watches)) {
		w := s.watches[name]
		parts = append(parts, &txnPart{Txn: metadata.Txn{Name: name, Since: w.since, Lease: w.lease}, Expires: w.expires,
			Watch: w.path, Changed: maps.Clone(w.changed), Lost: w.lost})
	}
	return parts
}

func splitWatches(parts []*txnPart) (rest []*txnPart, watches map[string]*watch) {
	watches = make(map[string]*watch)
	for _, p := range parts {
		if p.Watch == "" {
			rest = append(rest, p)
			continue
		}
		w := &watch{path: p.Watch, since: p.Since, lease: p.Lease, expires: p.Expires, changed: p.Changed, lost: p.Lost}
		if w.changed == nil {
			w.changed = make(map[string]bool)
		}
		for path := range w.changed {
			w.bytes += len(path)
		}
		watches[p.Name] = w
	}
	return rest, watches
}
