package cluster

import (
	"cmp"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"skerry/internal/base/advice"
	"skerry/systems/metadata"
)

// place is the location of a subtree: top in the shared tree is base in the server's own tree.
type place struct {
	top, server, base string
}

// area is the location of everything below top: on one server, or split over several that use the same base.
type area struct {
	place          // first part
	parts []string // servers; fewer than two: not split
}

// locate returns the place of a path in the area. The name that follows top selects the part.
func (a area) locate(whole string) place {
	p := a.place
	if name := strings.TrimPrefix(whole, strings.TrimSuffix(p.top, "/")); len(a.parts) > 1 && name != "" {
		name, _, _ = strings.Cut(name[1:], "/")
		p.server = a.parts[metadata.PartIndex(name, len(a.parts))]
	}
	return p
}

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

func ownerText(server, base string) string { return server + ":" + base }

// parseArea returns the area of a virtual directory. An owner without a path is the server's root. ok is false for an
// invalid path or an unknown server.
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

func rebase(p, from, to string) string {
	rest := strings.TrimPrefix(p, strings.TrimSuffix(from, "/"))
	if whole := strings.TrimSuffix(to, "/") + rest; whole != "" {
		return whole
	}
	return "/"
}

func (p place) toLocal(whole string) string { return rebase(whole, p.top, p.base) }

func (p place) toGlobal(own string) string { return rebase(own, p.base, p.top) }

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

func (p place) mayBeGone(err error) bool { return p.top != "/" && errors.Is(err, metadata.ErrNotFound) }

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

// globalError translates a server's error, which begins with a path, for the shared tree.
func (p place) globalError(c metadata.Command, err error) error {
	if err == nil {
		return nil
	}
	if rest, ok := strings.CutPrefix(err.Error(), metadata.Quote(p.toLocal(c.Path))+": "); ok {
		return advice.WithText(metadata.Quote(c.Path)+": "+rest, err)
	}
	if rest, ok := strings.CutPrefix(err.Error(), p.base+"/"); ok && p.base != "/" { // about a directory on the way
		return advice.WithText(metadata.Join(p.top, rest), err)
	}
	return err
}

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

func (k *places) forget(p place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for top := range k.all {
		if metadata.Under(top, p.top) {
			delete(k.all, top)
		}
	}
}

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

// targetsEntry reports whether a command concerns an entry of a directory rather than the directory's content.
func targetsEntry(c metadata.Command) bool {
	switch c.Op {
	case metadata.Mkdir:
		return !c.Parents
	case metadata.Create, metadata.Write, metadata.Rmdir, metadata.Remove, metadata.Move, metadata.Delegate, metadata.Adopt:
		return true
	}
	return false
}

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

// Holding is a server's share of the shared tree.
type Holding struct {
	Holds    []string          // paths of subtrees in its own tree
	Subtrees map[string]string // owners of virtual directories
}

// Claim is a subtree that exists more than once.
type Claim struct {
	// Holders are its locations as owners, "g2:/.subtrees/ID.EPOCH", latest epoch first.
	Holders []string
	// Holder is the location that a virtual directory names, which is the valid one; "" if no reachable server has such a
	// directory. By is that directory: "g1:/home".
	Holder, By string
}

// FindClaims returns subtrees that exist more than once, or that moved between the given holdings.
func FindClaims(servers map[string]Holding) []Claim {
	holders := make(map[string][]string) // by ID
	named := make(map[string]string)     // virtual directory by owner
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
			continue // one, or the parts of one
		}
		c := Claim{Holders: holders[id]}
		slices.SortFunc(c.Holders, func(a, b string) int { // latest epoch first
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
