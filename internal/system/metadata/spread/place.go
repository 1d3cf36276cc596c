package spread

import (
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"skerry/internal/base/retold"
	"skerry/internal/system/metadata"
)

// place is where a subtree is: the directory top of the whole tree is the directory base
// of a server's.
type place struct {
	top, server, base string
}

// owner is a place as the text of a virtual directory.
func owner(server, base string) string { return server + ":" + base }

// parseOwner reads the text of a virtual directory; a server's name alone is its root.
func parseOwner(text string) (server, base string, ok bool) {
	server, base, found := strings.Cut(text, ":")
	if !found {
		base = "/"
	}
	return server, base, metadata.CheckPath(base) == nil && checkName(server) == nil
}

// rebase is a path below one directory as the same below another.
func rebase(p, from, to string) string {
	rest := strings.TrimPrefix(p, strings.TrimSuffix(from, "/"))
	if whole := strings.TrimSuffix(to, "/") + rest; whole != "" {
		return whole
	}
	return "/"
}

// in is a path of the whole tree as one of the server's.
func (p place) in(whole string) string { return rebase(whole, p.top, p.base) }

// out is a path of the server's tree as one of the whole.
func (p place) out(own string) string { return rebase(own, p.base, p.top) }

// local is a command as the server has it.
func (p place) local(c metadata.Command) metadata.Command {
	if p.top == p.base {
		return c
	}
	c.Path = p.in(c.Path)
	if c.Op == metadata.Mkdir && c.Parents {
		c.To = p.base
	}
	return c
}

// gone tells whether an error may mean that the subtree is no longer there.
func (p place) gone(err error) bool { return p.top != "/" && errors.Is(err, metadata.ErrNotFound) }

// global is a server's result as one of the whole tree.
func (p place) global(c metadata.Command, r metadata.Result) metadata.Result {
	if c.Op == metadata.List && c.Path == "/" {
		r.Entries = slices.DeleteFunc(r.Entries, func(e metadata.Entry) bool { return apart("/" + e.Name) })
	}
	if p.top == p.base {
		return r
	}
	if c.Op != metadata.List && len(r.Entries) == 1 && c.Path == p.top {
		r.Entries[0].Name = path.Base(c.Path)
	}
	r.Err = p.problem(c, r.Err)
	return r
}

// problem is a server's error as one of the whole tree: servers' errors begin with the
// path that they are about.
func (p place) problem(c metadata.Command, err error) error {
	if err == nil {
		return nil
	}
	if rest, ok := strings.CutPrefix(err.Error(), metadata.Quote(p.in(c.Path))+": "); ok {
		return retold.As(metadata.Quote(c.Path)+": "+rest, err)
	}
	if rest, ok := strings.CutPrefix(err.Error(), p.base+"/"); ok && p.base != "/" { // about a directory on the way
		return retold.As(metadata.Join(p.top, rest), err)
	}
	return err
}

// places are those that a router knows, by top. There are as many as subtrees.
type places struct {
	mu  sync.RWMutex
	all map[string]place
}

func (k *places) add(p place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = make(map[string]place)
	}
	k.all[p.top] = p
}

// forget forgets a place, and what was learnt below it.
func (k *places) forget(p place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for top := range k.all {
		if metadata.Under(top, p.top) {
			delete(k.all, top)
		}
	}
}

// nearest is the innermost place that a path is in, if any.
func (k *places) nearest(whole string) (place, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for len(k.all) > 0 && whole != "/" {
		if p, ok := k.all[whole]; ok {
			return p, true
		}
		whole, _ = metadata.Split(whole)
	}
	return place{}, false
}

// ofEntry tells whether a command is about an entry of a directory rather than about what
// the entry leads to.
func ofEntry(c metadata.Command) bool {
	switch c.Op {
	case metadata.Mkdir:
		return !c.Parents
	case metadata.Create, metadata.Write, metadata.Rmdir, metadata.Remove, metadata.Move, metadata.Delegate, metadata.Adopt:
		return true
	}
	return false
}

// place is where a command's path is, as far as it is known: where the directory is that
// has the entry, for commands about that.
func (r *Router) place(c metadata.Command) place {
	if ofEntry(c) && c.Path != "/" {
		return r.parent(c.Path)
	}
	return r.placeOf(c.Path)
}

func (r *Router) parent(whole string) place {
	dir, _ := metadata.Split(whole)
	return r.placeOf(dir)
}

func (r *Router) placeOf(whole string) place {
	if p, ok := r.known.nearest(whole); ok {
		return p
	}
	return place{top: "/", server: r.servers.Root, base: "/"}
}
