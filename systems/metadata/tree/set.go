package tree

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
)

// width is the maximum number of items of a leaf and of branches of an inner node. A change copies one node per level.
const width = 16

// sparse is the size below which a node tries to merge with a neighbour.
const sparse = width / 4

// set has the entries of a directory by name: an immutable B+ tree. A change copies the path from the root to the leaf,
// so that readers can use old sets. nil is the empty set.
type set struct {
	count    int
	stamp    uint64   // leaf: random and unique
	items    []item   // leaf
	branches []branch // inner node; nil for a leaf
}

type item struct {
	name string
	node *node
}

// branch is a child of an inner node. first is at most its smallest name, and greater than the previous branch's names.
type branch struct {
	first string
	set   *set
}

func (s *set) len() int {
	if s == nil {
		return 0
	}
	return s.count
}

func (s *set) get(name string) *node {
	if s == nil {
		return nil
	}
	for s.branches != nil {
		s = s.branches[s.branchOf(name)].set
	}
	if i, found := s.search(name); found {
		return s.items[i].node
	}
	return nil
}

func (s *set) search(name string) (int, bool) {
	lo, hi := 0, len(s.items)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch c := strings.Compare(s.items[mid].name, name); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false
}

func (s *set) branchOf(name string) int {
	lo, hi := 1, len(s.branches)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s.branches[mid].first <= name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

func newLeaf(items []item) *set { return &set{count: len(items), stamp: rand.Uint64(), items: items} }

func newInner(branches []branch) *set {
	s := &set{branches: branches}
	for _, b := range branches {
		s.count += b.set.count
	}
	return s
}

func (s *set) with(it item) *set {
	if s == nil {
		return newLeaf([]item{it})
	}
	a, b := s.insert(it)
	if b == nil {
		return a
	}
	return newInner([]branch{{a.first(), a}, {b.first(), b}})
}

// insert is with, but returns two nodes if one would be too wide. For names in order, the first node stays full.
func (s *set) insert(it item) (*set, *set) {
	if s.branches == nil {
		i, found := s.search(it.name)
		if found {
			items := slices.Clone(s.items)
			items[i] = it
			return newLeaf(items), nil
		}
		if len(s.items) == width && i == width {
			return s, newLeaf([]item{it})
		}
		a, b := insertSplit(s.items, i, it)
		if b == nil {
			return newLeaf(a), nil
		}
		return newLeaf(a), newLeaf(b)
	}
	i := s.branchOf(it.name)
	a, b := s.branches[i].set.insert(it)
	branches := slices.Clone(s.branches)
	branches[i] = branch{a.first(), a}
	if b == nil {
		return &set{count: s.count + a.count - s.branches[i].set.count, branches: branches}, nil
	}
	split := branch{b.first(), b}
	if len(branches) == width && i == width-1 {
		return newInner(branches), newInner([]branch{split})
	}
	left, right := insertSplit(branches, i+1, split)
	if right == nil {
		return newInner(left), nil
	}
	return newInner(left), newInner(right)
}

func insertSplit[T any](list []T, i int, v T) (a, b []T) {
	grown := make([]T, len(list)+1)
	copy(grown, list[:i])
	grown[i] = v
	copy(grown[i+1:], list[i:])
	if len(grown) <= width {
		return grown, nil
	}
	half := len(grown) / 2
	return slices.Clone(grown[:half]), slices.Clone(grown[half:])
}

func (s *set) first() string {
	if s.branches != nil {
		return s.branches[0].first
	}
	return s.items[0].name
}

func (s *set) without(name string) *set {
	s = s.remove(name)
	for s != nil && len(s.branches) == 1 {
		s = s.branches[0].set
	}
	return s
}

func (s *set) remove(name string) *set {
	if s.branches == nil {
		i, found := s.search(name)
		switch {
		case !found:
			return s
		case len(s.items) == 1:
			return nil
		}
		return newLeaf(concat(s.items[:i], s.items[i+1:]))
	}
	i := s.branchOf(name)
	shrunk := s.branches[i].set.remove(name)
	if shrunk == nil {
		if len(s.branches) == 1 {
			return nil
		}
		return newInner(concat(s.branches[:i], s.branches[i+1:]))
	}
	branches := slices.Clone(s.branches)
	branches[i] = branch{shrunk.first(), shrunk}
	if shrunk.breadth() >= sparse || len(branches) == 1 {
		return newInner(branches)
	}
	left := max(i-1, 0)
	if i+1 < len(branches) && (i == 0 || branches[i+1].set.breadth() < branches[i-1].set.breadth()) {
		left = i
	}
	a, b := branches[left].set, branches[left+1].set
	if a.breadth()+b.breadth() > width {
		return newInner(branches)
	}
	both := a.join(b)
	branches[left] = branch{both.first(), both}
	return newInner(slices.Delete(branches, left+1, left+2))
}

func (s *set) breadth() int { return len(s.items) + len(s.branches) }

func (s *set) join(next *set) *set {
	if s.branches == nil {
		return newLeaf(concat(s.items, next.items))
	}
	return newInner(concat(s.branches, next.branches))
}

func concat[T any](a, b []T) []T {
	return append(append(make([]T, 0, len(a)+len(b)), a...), b...)
}

// each calls yield, in order, for all items or those after the name after, until it returns false.
func (s *set) each(after string, all bool, yield func(item) bool) bool {
	return s.leaves(after, all, func(l *set, whole bool) bool {
		i := 0
		if !whole {
			found := false
			if i, found = l.search(after); found {
				i++
			}
		}
		for _, it := range l.items[i:] {
			if !yield(it) {
				return false
			}
		}
		return true
	})
}

// leaves calls yield for the leaves from the one that contains or would contain after, or for all leaves. whole means
// that all items of the leaf are after the name. leaves stops and returns false when yield returns false.
func (s *set) leaves(after string, all bool, yield func(l *set, whole bool) bool) bool {
	if s == nil {
		return true
	}
	if s.branches == nil {
		return yield(s, all)
	}
	i := 0
	if !all {
		i = s.branchOf(after)
	}
	for k, b := range s.branches[i:] {
		if !b.set.leaves(after, all || k > 0, yield) {
			return false
		}
	}
	return true
}

// stampOf returns a stamp of the names after the name after (or of all names) up to last (or to the end). If a name in
// that range is added or removed, the stamp changes, even if the change is later reverted. It returns 0 for an empty set.
func (s *set) stampOf(after string, all bool, last string) (stamp uint64) {
	s.leaves(after, all, func(l *set, _ bool) bool {
		if last != "" && l.items[0].name > last {
			return false
		}
		stamp = bits.RotateLeft64(stamp, 1) ^ l.stamp
		return true
	})
	return stamp
}

func buildSet(items []item) *set {
	if len(items) == 0 {
		return nil
	}
	level := make([]branch, 0, (len(items)+width-1)/width)
	for chunk := range slices.Chunk(items, width) {
		level = append(level, branch{chunk[0].name, newLeaf(slices.Clone(chunk))})
	}
	for len(level) > 1 {
		above := make([]branch, 0, (len(level)+width-1)/width)
		for chunk := range slices.Chunk(level, width) {
			above = append(above, branch{chunk[0].first, newInner(slices.Clone(chunk))})
		}
		level = above
	}
	return level[0].set
}
