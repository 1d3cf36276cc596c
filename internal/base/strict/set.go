package strict

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Set puts a value at a path ("workload.threads", "events[0].for") of a tree that Decode will read into
// the struct type of into. Keys on the way are made. A mapping is merged into the mapping
// that is there; a single value where there is a mapping sets the key that it is the
// shorthand of. Keys that exclude what is set go. A path that the type does not have is a
// Problem at pos.
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
		return Problem{Pos: pos, Path: done, Message: fmt.Sprintf("%s is %s and has no key %q", done, describeType(t), tail[0])}, false
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

// keyType is the type of what a struct has under a key.
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

// setItem goes on in an item that the list has: "[0]", "[1][2]". Without indexes it goes on
// in n itself.
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
		return Problem{Pos: pos, Path: done, Message: fmt.Sprintf("%s%s is no item of a list", done, indexes), Hint: "write [0] for the first"}, false
	case t.Kind() != reflect.Slice || n.Kind != List && n.Kind != Null:
		return Problem{Pos: pos, Path: done, Message: fmt.Sprintf("%s has no items", done), Hint: "give it as a whole"}, false
	case i >= len(n.Items):
		return Problem{Pos: pos, Path: done, Message: fmt.Sprintf("%s has %d items and no [%d]", done, len(n.Items), i), Hint: "the first is [0]"}, false
	}
	return setItem(n.Items[i], t.Elem(), fmt.Sprintf("%s[%d]", done, i), after, rest, pos, value)
}

// mergeValue replaces what n is by a value, or merges the value into it.
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

// makeMapping makes a mapping of nothing, and of the single value that stands for one.
func makeMapping(n *Node, t reflect.Type) {
	switch {
	case n.Kind == Null:
		n.Kind = Map
	case t.Kind() == reflect.Struct && standsFor(n, t):
		single := *n
		*n = Node{Kind: Map, Pos: n.Pos, Entries: []Entry{{Key: shorthand(t), Pos: n.Pos, Value: &single}}}
	}
}

// removeExcluded removes the keys that exclude key.
func removeExcluded(n *Node, t reflect.Type, key string) {
	for _, group := range alternatives(t) {
		for _, k := range group {
			if k == key {
				for _, other := range group {
					if other != key {
						n.remove(other)
					}
				}
			}
		}
	}
}

var selfDecoding = reflect.TypeFor[Decoder]()

// Has says whether the document itself holds a path, as opposed to a default. Items of lists are "path[2]".
func (n *Node) Has(path string) bool {
	last, found := n.find(path)
	return found && last.Kind != Null
}

// At returns the node at a path, or the deepest one on the way to it: where a message
// about the path points. Items of lists are "path[2]".
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
