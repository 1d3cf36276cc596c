package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"skerry/systems/metadata"
)

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
