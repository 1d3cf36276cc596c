package tree_test

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"skerry/systems/metadata"
)

// model is a simple, slow tree: entries by path.
type model map[string]metadata.Entry

func newModel() model {
	return model{"/": {Name: "/", Kind: metadata.Directory, Mode: metadata.DefaultDirMode}}
}

// do returns the expected answer. File contents are represented by their sizes.
func (m model) do(c metadata.Command) metadata.Result {
	fail := func(p string, err error) metadata.Result {
		return metadata.Result{Err: &metadata.Error{Path: p, Err: err}}
	}
	if c.Op == metadata.Mkdir && c.Parents {
		return m.mkdirs(c)
	}
	switch c.Op {
	case metadata.List, metadata.Stat, metadata.Chmod, metadata.Touch:
		if err := m.way(c.Path); err != nil {
			return fail(c.Path, err)
		}
		if _, found := m[c.Path]; !found {
			return fail(c.Path, metadata.ErrNotFound)
		}
	default:
		if c.Path == "/" {
			return fail(c.Path, metadata.ErrExists)
		}
		if err := m.way(c.Path); err != nil {
			return fail(c.Path, err)
		}
	}
	e, found := m[c.Path]
	switch c.Op {
	case metadata.Stat:
		return metadata.Result{Entries: []metadata.Entry{m.entry(c.Path)}}
	case metadata.List:
		if e.Kind == metadata.File {
			return fail(c.Path, metadata.ErrNotDirectory)
		}
		return m.list(c)
	case metadata.Chmod:
		e.Mode = c.Mode
		m[c.Path] = e
		return metadata.Result{}
	case metadata.Touch:
		e.Modified = c.Time
		m[c.Path] = e
		return metadata.Result{}
	case metadata.Mkdir, metadata.Create, metadata.Write:
		switch {
		case found && c.Op == metadata.Write && e.Kind == metadata.Directory:
			return fail(c.Path, metadata.ErrIsDirectory)
		case found && (c.Op != metadata.Write || c.Exclusive):
			return fail(c.Path, metadata.ErrExists)
		}
		kind, mode := metadata.File, c.Mode
		if c.Op == metadata.Mkdir {
			kind = metadata.Directory
		}
		if found {
			mode = e.Mode
		} else {
			m.touch(path.Dir(c.Path), c.Time)
		}
		m[c.Path] = metadata.Entry{Name: path.Base(c.Path), Kind: kind, Mode: mode, Modified: c.Time, Size: int64(len(c.Data))}
		return metadata.Result{}
	case metadata.Rmdir, metadata.Remove:
		switch {
		case !found:
			return fail(c.Path, metadata.ErrNotFound)
		case c.Op == metadata.Rmdir && e.Kind == metadata.File:
			return fail(c.Path, metadata.ErrNotDirectory)
		case c.Op == metadata.Rmdir && m.children(c.Path) > 0:
			return fail(c.Path, metadata.ErrNotEmpty)
		case c.Op == metadata.Remove && !c.Recursive && e.Kind == metadata.Directory:
			return fail(c.Path, metadata.ErrIsDirectory)
		}
		m.touch(path.Dir(c.Path), c.Time)
		maps.DeleteFunc(m, func(p string, _ metadata.Entry) bool { return metadata.Under(p, c.Path) })
		return metadata.Result{}
	case metadata.Move:
		return m.move(c)
	}
	return fail(c.Path, errors.New("not in the model"))
}

func (m model) move(c metadata.Command) metadata.Result {
	fail := func(p string, err error) metadata.Result {
		return metadata.Result{Err: &metadata.Error{Path: p, Err: err}}
	}
	e, found := m[c.Path]
	if !found {
		return fail(c.Path, metadata.ErrNotFound)
	}
	if err := m.way(c.To); err != nil {
		return fail(c.To, err)
	}
	target, there := m[c.To]
	switch {
	case c.Path == c.To:
		return metadata.Result{}
	case !there:
	case !c.Replace:
		return fail(c.To, metadata.ErrExists)
	case m.children(c.To) > 0:
		return fail(c.To, metadata.ErrNotEmpty)
	case e.Kind == metadata.Directory && target.Kind == metadata.File:
		return fail(c.To, metadata.ErrNotDirectory)
	case e.Kind == metadata.File && target.Kind == metadata.Directory:
		return fail(c.To, metadata.ErrIsDirectory)
	}
	delete(m, c.To)
	for p, e := range maps.Clone(m) {
		if metadata.Under(p, c.Path) {
			delete(m, p)
			to := c.To + p[len(c.Path):]
			e.Name = path.Base(to)
			m[to] = e
		}
	}
	m.touch(path.Dir(c.Path), c.Time)
	m.touch(path.Dir(c.To), c.Time)
	return metadata.Result{}
}

func (m model) mkdirs(c metadata.Command) metadata.Result {
	if e, found := m[c.Path]; found {
		if e.Kind == metadata.File {
			return metadata.Result{Err: &metadata.Error{Path: c.Path, Err: metadata.ErrExists}}
		}
		return metadata.Result{}
	}
	if err := m.way(c.Path); err != nil && !errors.Is(err, metadata.ErrNotFound) {
		return metadata.Result{Err: &metadata.Error{Path: c.Path, Err: err}}
	}
	for p := c.Path; ; p = path.Dir(p) {
		if _, found := m[p]; found {
			m.touch(p, c.Time)
			return metadata.Result{}
		}
		m[p] = metadata.Entry{Name: path.Base(p), Kind: metadata.Directory, Mode: c.Mode, Modified: c.Time}
	}
}

// way returns the error of reaching the directory that contains a path.
func (m model) way(p string) error {
	if p == "/" {
		return nil
	}
	at := ""
	for _, name := range strings.Split(path.Dir(p), "/")[1:] {
		if name == "" {
			break
		}
		at += "/" + name
		if e, found := m[at]; !found {
			return metadata.ErrNotFound
		} else if e.Kind == metadata.File {
			return metadata.ErrNotDirectory
		}
	}
	return nil
}

func (m model) touch(p string, now int64) {
	e := m[p]
	e.Modified = now
	m[p] = e
}

func (m model) children(dir string) int {
	n := 0
	for p := range m {
		if p != "/" && path.Dir(p) == dir {
			n++
		}
	}
	return n
}

func (m model) entry(p string) metadata.Entry {
	e := m[p]
	if e.Kind == metadata.Directory {
		e.Size = int64(m.children(p))
	}
	return e
}

func (m model) list(c metadata.Command) metadata.Result {
	var r metadata.Result
	for _, p := range slices.Sorted(maps.Keys(m)) {
		if p == "/" || path.Dir(p) != c.Path || path.Base(p) <= c.After && c.After != "" {
			continue
		}
		if len(r.Entries) == c.Limit {
			r.Next = r.Entries[c.Limit-1].Name
			break
		}
		e := metadata.Entry{Name: path.Base(p)}
		if c.Long {
			e = m.entry(p)
		}
		r.Entries = append(r.Entries, e)
	}
	return r
}
