package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Set sets the value at a path ("workload.threads", "events[0].for") of a tree for the struct type of into. It creates
// missing keys on the path, merges a mapping into an existing mapping, expands shorthands, and removes keys that
// exclude the new one. A path that the type does not have is a Problem at pos.
func Set(root *Node, into any, path string, pos Pos, value *Node) error {
	t := reflect.TypeOf(into)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if path == "" {
		return Problems{{Pos: pos, Message: "the path is empty", Hint: "write KEY=VALUE, such as scale=0.2"}}
	}
	if p, ok := setPath(root, t, "", strings.Split(path, "."), pos, value); !ok {
		return Problems{p}
	}
	return nil
}

func setPath(n *Node, t reflect.Type, done string, tail []string, pos Pos, value *Node) (Problem, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(tail) == 0 {
		mergeValue(n, t, value)
		return Problem{}, true
	}
	switch {
	case t.Kind() == reflect.Map, reflect.PointerTo(t).Implements(selfDecoding):
		makeMapping(n, t)
		n.put(strings.Join(tail, "."), value)
		return Problem{}, true
	case t.Kind() != reflect.Struct:
		message := fmt.Sprintf("%s is %s and has no key %q", done, describeType(t), tail[0])
		return Problem{Pos: pos, Path: done, Message: message}, false
	}
	key, indexes := tail[0], ""
	if i := strings.IndexByte(key, '['); i > 0 {
		key, indexes = key[:i], key[i:]
	}
	of, ok := keyType(t, key)
	if !ok {
		return unknownKey(pos, done, key, fieldNames(fields(t))), false
	}
	makeMapping(n, t)
	child := n.Get(key).Clone()
	if child == nil {
		child = &Node{Pos: pos}
	}
	p, ok := setItem(child, of, Join(done, key), indexes, tail[1:], pos, value)
	if ok {
		removeExcluded(n, t, key)
		n.put(key, child)
	}
	return p, ok
}

// keyType returns the type of a key of a struct.
func keyType(t reflect.Type, key string) (reflect.Type, bool) {
	for _, f := range fields(t) {
		if f.name == key {
			return f.typ, true
		}
	}
	if i, ok := restField(t); ok {
		return t.Field(i).Type.Elem(), true
	}
	return nil, false
}

// setItem continues setPath in the list item at indexes ("[0]", "[1][2]"), or in n if indexes is "".
func setItem(n *Node, t reflect.Type, done, indexes string, rest []string, pos Pos, value *Node) (Problem, bool) {
	if indexes == "" {
		return setPath(n, t, done, rest, pos, value)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	inner, after, closed := strings.Cut(indexes[1:], "]")
	i, err := strconv.Atoi(inner)
	switch {
	case indexes[0] != '[' || !closed || err != nil || i < 0:
		message := fmt.Sprintf("%s%s is not an item of a list", done, indexes)
		return Problem{Pos: pos, Path: done, Message: message, Hint: "write [0] for the first item"}, false
	case t.Kind() != reflect.Slice || n.Kind != List && n.Kind != Null:
		return Problem{Pos: pos, Path: done, Message: fmt.Sprintf("%s has no items", done), Hint: "set the whole value"}, false
	case i >= len(n.Items):
		message := fmt.Sprintf("%s has %d items and no [%d]", done, len(n.Items), i)
		return Problem{Pos: pos, Path: done, Message: message, Hint: "the first item is [0]"}, false
	}
	return setItem(n.Items[i], t.Elem(), fmt.Sprintf("%s[%d]", done, i), after, rest, pos, value)
}

// mergeValue replaces n by a value, or merges a mapping into it.
func mergeValue(n *Node, t reflect.Type, value *Node) {
	if t.Kind() == reflect.Struct && standsFor(value, t) {
		value = &Node{Kind: Map, Pos: value.Pos, Entries: []Entry{{Key: shorthand(t), Pos: value.Pos, Value: value}}}
	}
	if value.Kind != Map || t.Kind() != reflect.Struct {
		*n = *value.Clone()
		return
	}
	makeMapping(n, t)
	if n.Kind != Map {
		*n = *value.Clone()
		return
	}
	types := map[string]reflect.Type{}
	for _, f := range fields(t) {
		types[f.name] = f.typ
	}
	for _, e := range value.Entries {
		removeExcluded(n, t, e.Key)
		child := n.Get(e.Key).Clone()
		ft := types[e.Key]
		for ft != nil && ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if child == nil || ft == nil || ft.Kind() != reflect.Struct {
			n.put(e.Key, e.Value.Clone())
			continue
		}
		mergeValue(child, ft, e.Value)
		n.put(e.Key, child)
	}
}

// makeMapping converts an empty node or a shorthand into a mapping.
func makeMapping(n *Node, t reflect.Type) {
	switch {
	case n.Kind == Null:
		n.Kind = Map
	case t.Kind() == reflect.Struct && standsFor(n, t):
		single := *n
		*n = Node{Kind: Map, Pos: n.Pos, Entries: []Entry{{Key: shorthand(t), Pos: n.Pos, Value: &single}}}
	}
}

func removeExcluded(n *Node, t reflect.Type, key string) {
	for _, group := range alternatives(t) {
		if !slices.Contains(group, key) {
			continue
		}
		for _, other := range group {
			if other != key {
				n.remove(other)
			}
		}
	}
}

var selfDecoding = reflect.TypeFor[Decoder]()

// Has reports whether the document contains a path. Defaults do not count. Items of lists are "path[2]".
func (n *Node) Has(path string) bool {
	last, found := n.find(path)
	return found && last.Kind != Null
}

// At returns the node at a path, or its deepest existing ancestor, for the position of a message about the path. Items
// of lists are "path[2]".
func (n *Node) At(path string) *Node {
	deepest, _ := n.find(path)
	return deepest
}

func (n *Node) find(path string) (deepest *Node, found bool) {
	for key := range strings.SplitSeq(strings.ReplaceAll(path, "[", ".["), ".") {
		var next *Node
		if i := 0; strings.HasPrefix(key, "[") {
			if _, err := fmt.Sscanf(key, "[%d]", &i); err == nil && i >= 0 && i < len(n.Items) {
				next = n.Items[i]
			}
		} else {
			next = n.Get(key)
		}
		if next == nil {
			return n, false
		}
		n = next
	}
	return n, true
}
