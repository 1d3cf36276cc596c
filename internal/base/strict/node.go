package strict

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Kind of a node.
type Kind int

// The kinds.
const (
	Null Kind = iota
	Text      // quoted, or not a number nor a boolean
	Number
	Bool
	List
	Map
)

// String returns the name of the kind in messages.
func (k Kind) String() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a list", "a mapping"}[k]
}

// Node is a value in a document with its position.
type Node struct {
	Kind    Kind
	Scalar  string // of Text, Number and Bool, as written
	Items   []*Node
	Entries []Entry
	Pos     Pos
}

// Entry is one key of a mapping.
type Entry struct {
	Key   string
	Pos   Pos // of the key
	Value *Node
}

// scalar reports whether the node is a single value.
func (n *Node) scalar() bool { return n.Kind == Text || n.Kind == Number || n.Kind == Bool }

// Get returns the value of a key, or nil.
func (n *Node) Get(key string) *Node {
	if i := n.index(key); i >= 0 {
		return n.Entries[i].Value
	}
	return nil
}

func (n *Node) index(key string) int {
	return slices.IndexFunc(n.Entries, func(e Entry) bool { return e.Key == key })
}

// put replaces the value under a key, or adds it.
func (n *Node) put(key string, v *Node) {
	if i := n.index(key); i >= 0 {
		n.Entries[i].Value = v
		return
	}
	n.Entries = append(n.Entries, Entry{Key: key, Pos: v.Pos, Value: v})
}

func (n *Node) remove(key string) {
	n.Entries = slices.DeleteFunc(n.Entries, func(e Entry) bool { return e.Key == key })
}

// Clone copies the tree.
func (n *Node) Clone() *Node {
	if n == nil {
		return nil
	}
	c := *n
	c.Items = slices.Clone(n.Items)
	for i, item := range c.Items {
		c.Items[i] = item.Clone()
	}
	c.Entries = slices.Clone(n.Entries)
	for i := range c.Entries {
		c.Entries[i].Value = c.Entries[i].Value.Clone()
	}
	return &c
}

// Value converts the node to nil, string, int64, float64, bool, []any or map[string]any.
func (n *Node) Value() any {
	switch n.Kind {
	case Text:
		return n.Scalar
	case Number:
		if i, err := strconv.ParseInt(n.Scalar, 10, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(n.Scalar, 64); err == nil {
			return f
		}
		return n.Scalar
	case Bool:
		return n.Scalar == "true"
	case List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = item.Value()
		}
		return list
	case Map:
		m := make(map[string]any, len(n.Entries))
		for _, e := range n.Entries {
			m[e.Key] = e.Value.Value()
		}
		return m
	}
	return nil
}

// integer parses a whole number. 1e5 is a whole number.
func (n *Node) integer() (int64, bool) {
	if n.Kind != Number {
		return 0, false
	}
	if i, err := strconv.ParseInt(n.Scalar, 10, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(n.Scalar, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func (n *Node) float() (float64, bool) {
	if n.Kind != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.Scalar, 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

// Mapping returns a mapping of single values, as Value returns them. It has no position.
func Mapping(values map[string]any) *Node {
	n := &Node{Kind: Map}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		n.Entries = append(n.Entries, Entry{Key: key, Value: scalarNode(fmt.Sprint(values[key]))})
	}
	return n
}
