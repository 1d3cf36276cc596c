package strict

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/suggest"
)

// Decode fills into, a pointer to a struct, from a tree and returns every problem. Keys
// that are left out take the default of their tag, except in pointers: those stay nil,
// so that whoever reads them can tell. path is where in the document the tree stands, ""
// for its root.
func Decode(n *Node, into any, path string) Problems {
	d := &decoder{}
	d.value(n, reflect.ValueOf(into).Elem(), path)
	return d.problems.Sorted()
}

type decoder struct{ problems Problems }

func (d *decoder) report(p Problem) { d.problems = append(d.problems, p) }

func (d *decoder) fail(n *Node, path, hint, format string, args ...any) bool {
	d.report(Problem{Pos: n.Pos, Path: path, Message: called(path) + fmt.Sprintf(format, args...), Hint: hint})
	return false
}

// called begins a message with what it is about.
func called(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// Join appends a key to a path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// value decodes n into v and says whether v holds it.
func (d *decoder) value(n *Node, v reflect.Value, path string) bool {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(n, v.Elem(), path)
	}
	if c, ok := v.Addr().Interface().(Decoder); ok {
		before := len(d.problems)
		c.DecodeNode(n, path, d.report)
		return len(d.problems) == before
	}
	if v.Kind() == reflect.Struct {
		return d.object(n, v, path)
	}
	if n.Kind == Null {
		return d.fail(n, path, "", "nothing is given, want %s", wanted(v.Type()))
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if !n.scalar() {
			return d.fail(n, path, "", "want a single value, not %v", n.Kind)
		}
		if err := t.UnmarshalText([]byte(n.Scalar)); err != nil {
			d.report(Problem{Pos: n.Pos, Path: path, Message: called(path) + err.Error(), Err: err})
			return false
		}
		return true
	}
	return d.plain(n, v, path)
}

func (d *decoder) plain(n *Node, v reflect.Value, path string) bool {
	mismatch := func() bool {
		return d.fail(n, path, mend(n, v.Type()), "want %s, not %s", wanted(v.Type()), described(n))
	}
	switch v.Kind() {
	case reflect.String:
		if !n.scalar() {
			return mismatch()
		}
		v.SetString(n.Scalar)
	case reflect.Bool:
		if n.Kind != Bool {
			return mismatch()
		}
		v.SetBool(n.Scalar == "true")
	case reflect.Int, reflect.Int64:
		i, ok := n.integer()
		if !ok {
			return mismatch()
		}
		v.SetInt(i)
	case reflect.Uint64:
		u, err := strconv.ParseUint(n.Scalar, 10, 64)
		if n.Kind != Number || err != nil {
			return mismatch()
		}
		v.SetUint(u)
	case reflect.Float64:
		f, ok := n.float()
		if !ok {
			return mismatch()
		}
		v.SetFloat(f)
	case reflect.Slice:
		if n.Kind != List {
			return mismatch()
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items)))
		ok := true
		for i, item := range n.Items {
			ok = d.value(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i)) && ok
		}
		return ok
	case reflect.Map:
		if n.Kind != Map {
			return mismatch()
		}
		v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Entries)))
		for _, e := range n.Entries {
			item := reflect.New(v.Type().Elem()).Elem()
			if e.Value.Kind == Null && structured(item.Type()) {
				continue // "hello:" with everything below it commented out
			}
			if d.value(e.Value, item, Join(path, e.Key)) {
				v.SetMapIndex(reflect.ValueOf(e.Key), item)
			}
		}
	case reflect.Interface:
		if !n.scalar() {
			return d.fail(n, path, "", "want a single value, not %v", n.Kind)
		}
		v.Set(reflect.ValueOf(n.Value()))
	default:
		return d.fail(n, path, "", "cannot hold a %v", v.Type())
	}
	return true
}

// object decodes a mapping, or the single value that stands for one.
func (d *decoder) object(n *Node, v reflect.Value, path string) bool {
	n, ok := d.expand(n, v.Type(), path)
	if !ok {
		return false
	}
	before := len(d.problems)
	fs := fields(v.Type())
	others := &Node{Kind: Map, Pos: n.Pos}
	for _, e := range n.Entries {
		if !slices.ContainsFunc(fs, func(f field) bool { return f.name == e.Key }) {
			others.Entries = append(others.Entries, e)
		}
	}
	if i, ok := rest(v.Type()); ok && len(others.Entries) > 0 {
		d.value(others, v.Field(i), path)
	} else {
		for _, e := range others.Entries {
			d.report(unknownKey(e.Pos, path, e.Key, names(fs)))
		}
	}
	for _, f := range fs {
		target := v.FieldByIndex(f.index)
		item := n.Get(f.name)
		if item != nil && item.Kind == Null && structured(f.typ) {
			item = nil // "stop:" with everything below it commented out
		}
		at := Join(path, f.name)
		switch {
		case f.choice:
			d.choose(item, f, target, at)
		case item != nil:
			if d.value(item, target, at) {
				d.check(item, target, f.rules, at)
			}
		case f.rules.required:
			d.fail(n, path, "", "%s is missing", f.name)
		default:
			d.leftOut(f, target)
		}
	}
	for _, group := range alternatives(v.Type()) {
		d.exclude(n, group, path)
	}
	return len(d.problems) == before
}

// choose decodes the value of a key of a Chooser, where the document has it.
func (d *decoder) choose(item *Node, f field, chooser reflect.Value, path string) {
	if item == nil {
		return
	}
	value := reflect.New(f.typ).Elem()
	d.value(item, value, path)
	chooser.Addr().Interface().(Chooser).Choose(f.name, value)
}

// leftOut gives a field that the document does not hold its default, and those of the
// fields in it.
func (d *decoder) leftOut(f field, v reflect.Value) {
	switch {
	case f.choice:
	case f.rules.fallback != nil && f.typ.Kind() != reflect.Pointer:
		d.value(literal(*f.rules.fallback), v, f.name)
	case f.typ.Kind() == reflect.Struct:
		for _, inner := range fields(f.typ) {
			d.leftOut(inner, v.FieldByIndex(inner.index))
		}
	}
}

// expand makes a mapping of a single value where the type has a shorthand.
func (d *decoder) expand(n *Node, t reflect.Type, path string) (*Node, bool) {
	switch {
	case n.Kind == Map:
		return n, true
	case standsFor(n, t):
		key := shorthand(t)
		return &Node{Kind: Map, Pos: n.Pos, Entries: []Entry{{Key: key, Pos: n.Pos, Value: n}}}, true
	}
	return n, d.fail(n, path, "it takes the keys "+strings.Join(names(fields(t)), ", "), "want %s, not %s", wanted(t), described(n))
}

// exclude reports all but the first of keys that exclude each other.
func (d *decoder) exclude(n *Node, group []string, path string) {
	first := ""
	for _, e := range n.Entries {
		switch {
		case !slices.Contains(group, e.Key):
		case first == "":
			first = e.Key
		default:
			d.report(Problem{Pos: e.Pos, Path: Join(path, e.Key), Message: fmt.Sprintf("%s%s and %s exclude each other", called(path), first, e.Key), Hint: "keep one of them"})
		}
	}
}

func unknownKey(pos Pos, path, key string, known []string) Problem {
	p := Problem{Pos: pos, Path: Join(path, key), Message: fmt.Sprintf("%sunknown key %q", called(path), key)}
	if near := suggest.Nearest(key, known); near != "" {
		p.Hint = fmt.Sprintf("did you mean %q?", near)
	} else {
		p.Hint = "known are " + strings.Join(known, ", ")
	}
	return p
}
