package cluster

import (
	"cmp"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"skerry/internal/base/errs"
	"skerry/systems/metadata"
)

// place is where a subtree is: the directory top of the whole tree is the directory base
// of a server's.
type place struct {
	top, server, base string
}

// area is what is below a directory of the whole tree: on a server, or in parts on several, in
// each of which the directory has the same base.
type area struct {
	place          // of the first part
	parts []string // servers, nil where it is not parted
}

// locate is where a path is that is in the area: in the part of the name that follows its top.
func (a area) locate(whole string) place {
	p := a.place
	if name := strings.TrimPrefix(whole, strings.TrimSuffix(p.top, "/")); len(a.parts) > 1 && name != "" {
		name, _, _ = strings.Cut(name[1:], "/")
		p.server = a.parts[metadata.PartIndex(name, len(a.parts))]
	}
	return p
}

// places are the places that have a part of the top.
func (a area) places() []place {
	if len(a.parts) < 2 {
		return []place{a.place}
	}
	all := make([]place, len(a.parts))
	for i, server := range a.parts {
		all[i] = place{top: a.top, server: server, base: a.base}
	}
	return all
}

// ownerText is a place as the text of a virtual directory.
func ownerText(server, base string) string { return server + ":" + base }

// parseArea is where the virtual directory top with an owner leads; a server's name alone is its root.
// It is false where a server is not known.
func (r *Router) parseArea(top, text string) (area, bool) {
	names, base, found := strings.Cut(text, ":")
	if !found {
		base = "/"
	}
	parts := strings.Split(names, ",")
	known := func(name string) bool { return r.servers.Service[name] != nil }
	return area{place{top, parts[0], base}, parts}, metadata.CheckPath(base) == nil && every(parts, known)
}

func every[T any](list []T, what func(T) bool) bool {
	return !slices.ContainsFunc(list, func(t T) bool { return !what(t) })
}

// rebase is a path below one directory as the same below another.
func rebase(p, from, to string) string {
	rest := strings.TrimPrefix(p, strings.TrimSuffix(from, "/"))
	if whole := strings.TrimSuffix(to, "/") + rest; whole != "" {
		return whole
	}
	return "/"
}

// toLocal is a path of the whole tree as one of the server's.
func (p place) toLocal(whole string) string { return rebase(whole, p.top, p.base) }

// toGlobal is a path of the server's tree as one of the whole.
func (p place) toGlobal(own string) string { return rebase(own, p.base, p.top) }

// localCommand is a command as the server has it.
func (p place) localCommand(c metadata.Command) metadata.Command {
	if p.top == p.base {
		return c
	}
	c.Path = p.toLocal(c.Path)
	if c.Op == metadata.Mkdir && c.Parents {
		c.To = p.base
	}
	return c
}

// mayBeGone tells whether an error may mean that the subtree is no longer there.
func (p place) mayBeGone(err error) bool { return p.top != "/" && errors.Is(err, metadata.ErrNotFound) }

// globalResult is a server's result as one of the whole tree.
func (p place) globalResult(c metadata.Command, r metadata.Result) metadata.Result {
	if c.Op == metadata.List && c.Path == "/" {
		r.Entries = slices.DeleteFunc(r.Entries, func(e metadata.Entry) bool { return isReserved("/" + e.Name) })
	}
	if p.top == p.base {
		return r
	}
	if c.Op != metadata.List && len(r.Entries) == 1 && c.Path == p.top {
		r.Entries[0].Name = path.Base(c.Path)
	}
	r.Err = p.globalError(c, r.Err)
	return r
}

// globalError is a server's error as one of the whole tree: servers' errors begin with the
// path that they are about.
func (p place) globalError(c metadata.Command, err error) error {
	if err == nil {
		return nil
	}
	if rest, ok := strings.CutPrefix(err.Error(), metadata.Quote(p.toLocal(c.Path))+": "); ok {
		return errs.As(metadata.Quote(c.Path)+": "+rest, err)
	}
	if rest, ok := strings.CutPrefix(err.Error(), p.base+"/"); ok && p.base != "/" { // about a directory on the way
		return errs.As(metadata.Join(p.top, rest), err)
	}
	return err
}

// places are the areas that a router knows, by top. There are as many as subtrees.
type places struct {
	mu  sync.RWMutex
	all map[string]area
}

func (k *places) add(a area) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = make(map[string]area)
	}
	k.all[a.top] = a
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

// nearest is the innermost area that a path is in, if any.
func (k *places) nearest(whole string) (area, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	for len(k.all) > 0 && whole != "/" {
		if a, ok := k.all[whole]; ok {
			return a, true
		}
		whole, _ = metadata.Split(whole)
	}
	return area{}, false
}

// targetsEntry tells whether a command is about an entry of a directory rather than about what
// the entry leads to.
func targetsEntry(c metadata.Command) bool {
	switch c.Op {
	case metadata.Mkdir:
		return !c.Parents
	case metadata.Create, metadata.Write, metadata.Rmdir, metadata.Remove, metadata.Move, metadata.Delegate, metadata.Adopt:
		return true
	}
	return false
}

// commandPlace is where a command's path is, as far as it is known: where the directory is that
// has the entry, for commands about that.
func (r *Router) commandPlace(c metadata.Command) place {
	if targetsEntry(c) && c.Path != "/" {
		return r.parentPlace(c.Path)
	}
	return r.placeOf(c.Path)
}

func (r *Router) parentPlace(whole string) place {
	dir, _ := metadata.Split(whole)
	return r.area(dir).locate(whole)
}

func (r *Router) placeOf(whole string) place { return r.area(whole).locate(whole) }

func (r *Router) area(whole string) area {
	if a, ok := r.known.nearest(whole); ok {
		return a
	}
	return area{place: place{top: "/", server: r.servers.Root, base: "/"}}
}

// Holding is what a server has of the whole tree.
type Holding struct {
	Holds    []string          // subtrees: paths of its own tree
	Subtrees map[string]string // virtual directories, and their owners
}

// Claim is a subtree that several servers have, or one has twice.
type Claim struct {
	// Holders are where it is, as owners: "g2:/.subtrees/ID.EPOCH".
	Holders []string
	// Holder is the one of them that a virtual directory names, which is the subtree; "" where
	// none of a server in reach does. By is that directory: "g1:/home".
	Holder, By string
}

// FindClaims are the subtrees that are there more than once, of servers by name. Where what
// these say is not of one moment, a subtree on its way may be among them.
func FindClaims(servers map[string]Holding) []Claim {
	holders := make(map[string][]string) // by ID
	named := make(map[string]string)     // by owner: the virtual directory
	for name, s := range servers {
		for _, path := range s.Holds {
			if sub, ok := metadata.ParseBase(path); ok {
				holders[sub.ID] = append(holders[sub.ID], ownerText(name, path))
			}
		}
		for path, to := range s.Subtrees {
			if sub, _ := metadata.ParseSubtree(to); !metadata.Under(path, metadata.Incoming) {
				for _, part := range sub.Parts() {
					named[part.Owner()] = ownerText(name, path)
				}
			}
		}
	}
	var claims []Claim
	for _, id := range slices.Sorted(maps.Keys(holders)) {
		by := func(h string) string { return named[h] }
		if first := by(holders[id][0]); len(holders[id]) < 2 || first != "" && every(holders[id], func(h string) bool { return by(h) == first }) {
			continue // one, or parts of one
		}
		c := Claim{Holders: holders[id]}
		slices.SortFunc(c.Holders, func(a, b string) int { // the latest epoch first
			x, _ := metadata.ParseSubtree(a)
			y, _ := metadata.ParseSubtree(b)
			return cmp.Or(cmp.Compare(y.Epoch, x.Epoch), strings.Compare(a, b))
		})
		for _, h := range c.Holders {
			if named[h] != "" {
				c.Holder, c.By = h, named[h]
				break
			}
		}
		claims = append(claims, c)
	}
	return claims
}
