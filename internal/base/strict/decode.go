package strict

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/suggest"
)

// Decode decodes a tree into a pointer to a struct and returns every problem. Missing keys get the default of their tag.
// Pointers stay nil, so that the caller can detect a missing key. path is the path of the tree in the document, "" for
// its root.
func Decode(n *Node, into any, path string) Problems {
	d := &decoder{}
	d.decodeValue(n, reflect.ValueOf(into).Elem(), path)
	return d.problems.Sorted()
}

type decoder struct{ problems Problems }

func (d *decoder) report(p Problem) { d.problems = append(d.problems, p) }

func (d *decoder) fail(n *Node, path, hint, format string, args ...any) bool {
	d.report(Problem{Pos: n.Pos, Path: path, Message: messagePrefix(path) + fmt.Sprintf(format, args...), Hint: hint})
	return false
}

// messagePrefix returns the start of a message about path.
func messagePrefix(path string) string {
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

// decodeValue decodes n into v. It returns false if it reported a problem.
func (d *decoder) decodeValue(n *Node, v reflect.Value, path string) bool {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return d.decodeValue(n, v.Elem(), path)
	}
	if c, ok := v.Addr().Interface().(Decoder); ok {
		before := len(d.problems)
		c.DecodeNode(n, path, d.report)
		return len(d.problems) == before
	}
	if v.Kind() == reflect.Struct {
		return d.decodeStruct(n, v, path)
	}
	if n.Kind == Null {
		return d.fail(n, path, "", "value is missing, want %s", describeType(v.Type()))
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if !n.scalar() {
			return d.fail(n, path, "", "want a single value, not %v", n.Kind)
		}
		if err := t.UnmarshalText([]byte(n.Scalar)); err != nil {
			d.report(Problem{Pos: n.Pos, Path: path, Message: messagePrefix(path) + err.Error(), Err: err})
			return false
		}
		return true
	}
	return d.decodePlain(n, v, path)
}

func (d *decoder) decodePlain(n *Node, v reflect.Value, path string) bool {
	mismatch := func() bool {
		return d.fail(n, path, suggestFix(n, v.Type()), "want %s, not %s", describeType(v.Type()), describeNode(n))
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
			ok = d.decodeValue(item, v.Index(i), fmt.Sprintf("%s[%d]", path, i)) && ok
		}
		return ok
	case reflect.Map:
		if n.Kind != Map {
			return mismatch()
		}
		v.Set(reflect.MakeMapWithSize(v.Type(), len(n.Entries)))
		for _, e := range n.Entries {
			item := reflect.New(v.Type().Elem()).Elem()
			if e.Value.Kind == Null && isStructured(item.Type()) {
				continue // the content of the key is commented out
			}
			if d.decodeValue(e.Value, item, Join(path, e.Key)) {
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

// decodeStruct decodes a mapping or its shorthand.
func (d *decoder) decodeStruct(n *Node, v reflect.Value, path string) bool {
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
	if i, ok := restField(v.Type()); ok && len(others.Entries) > 0 {
		d.decodeValue(others, v.Field(i), path)
	} else {
		for _, e := range others.Entries {
			d.report(unknownKey(e.Pos, path, e.Key, fieldNames(fs)))
		}
	}
	for _, f := range fs {
		target := v.FieldByIndex(f.index)
		item := n.Get(f.name)
		if item != nil && item.Kind == Null && isStructured(f.typ) {
			item = nil // the content of the key is commented out
		}
		at := Join(path, f.name)
		switch {
		case f.choice:
			d.decodeChoice(item, f, target, at)
		case item != nil:
			if d.decodeValue(item, target, at) {
				d.checkRules(item, target, f.rules, at)
			}
		case f.rules.required:
			d.fail(n, path, "", "%s is missing", f.name)
		default:
			d.applyDefaults(f, target)
		}
	}
	for _, group := range alternatives(v.Type()) {
		d.checkExclusive(n, group, path)
	}
	return len(d.problems) == before
}

// decodeChoice decodes the value of a key of a Chooser if the document has the key.
func (d *decoder) decodeChoice(item *Node, f field, chooser reflect.Value, path string) {
	if item == nil {
		return
	}
	value := reflect.New(f.typ).Elem()
	d.decodeValue(item, value, path)
	chooser.Addr().Interface().(Chooser).Choose(f.name, value)
}

// applyDefaults sets the defaults of a missing field and of its nested fields.
func (d *decoder) applyDefaults(f field, v reflect.Value) {
	switch {
	case f.choice:
	case f.rules.fallback != nil && f.typ.Kind() != reflect.Pointer:
		d.decodeValue(scalarNode(*f.rules.fallback), v, f.name)
	case f.typ.Kind() == reflect.Struct:
		for _, inner := range fields(f.typ) {
			d.applyDefaults(inner, v.FieldByIndex(inner.index))
		}
	}
}

// expand expands a shorthand into a mapping.
func (d *decoder) expand(n *Node, t reflect.Type, path string) (*Node, bool) {
	switch {
	case n.Kind == Map:
		return n, true
	case standsFor(n, t):
		key := shorthand(t)
		return &Node{Kind: Map, Pos: n.Pos, Entries: []Entry{{Key: key, Pos: n.Pos, Value: n}}}, true
	}
	hint := "known keys are " + strings.Join(fieldNames(fields(t)), ", ")
	return n, d.fail(n, path, hint, "want %s, not %s", describeType(t), describeNode(n))
}

// checkExclusive reports all but the first key of a group that exclude each other.
func (d *decoder) checkExclusive(n *Node, group []string, path string) {
	first := ""
	for _, e := range n.Entries {
		switch {
		case !slices.Contains(group, e.Key):
		case first == "":
			first = e.Key
		default:
			d.report(Problem{
				Pos: e.Pos, Path: Join(path, e.Key), Hint: "keep one of them",
				Message: fmt.Sprintf("%s%s and %s exclude each other", messagePrefix(path), first, e.Key),
			})
		}
	}
}

func unknownKey(pos Pos, path, key string, known []string) Problem {
	p := Problem{Pos: pos, Path: Join(path, key), Message: fmt.Sprintf("%sunknown key %q", messagePrefix(path), key)}
	if near := suggest.Nearest(key, known); near != "" {
		p.Hint = fmt.Sprintf("did you mean %q?", near)
	} else {
		p.Hint = "known are " + strings.Join(known, ", ")
	}
	return p
}

// rules are the constraints of a field in its jsonschema tag.
type rules struct {
	required bool
	fallback *string // default
	enum     []string
	min, max string
	above    string
	minLen   string
	maxLen   string
	pattern  string
}

func parseRules(tag string) rules {
	var r rules
	for part := range strings.SplitSeq(tag, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "required":
			r.required = true
		case "default":
			r.fallback = &value
		case "enum":
			r.enum = append(r.enum, value)
		case "minimum":
			r.min = value
		case "maximum":
			r.max = value
		case "exclusiveMinimum":
			r.above = value
		case "minItems":
			r.minLen = value
		case "maxItems":
			r.maxLen = value
		case "pattern":
			r.pattern = value
		}
	}
	return r
}

// checkRules checks a decoded value against the rules of its tag.
func (d *decoder) checkRules(n *Node, v reflect.Value, r rules, path string) {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		s := v.String()
		if len(r.enum) > 0 && !slices.Contains(r.enum, s) {
			hint := ""
			if near := suggest.Nearest(s, r.enum); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			d.fail(n, path, hint, "%q is not one of %s", s, strings.Join(r.enum, ", "))
		}
		if r.pattern != "" && !regexp.MustCompile(r.pattern).MatchString(s) {
			d.fail(n, path, "", "%q does not match %s", s, r.pattern)
		}
	case reflect.Slice:
		d.checkBounds(n, float64(v.Len()), rules{min: r.minLen, max: r.maxLen}, path, " entries")
	case reflect.Int, reflect.Int64:
		d.checkBounds(n, float64(v.Int()), r, path, "")
	case reflect.Float64:
		d.checkBounds(n, v.Float(), r, path, "")
	}
}

func (d *decoder) checkBounds(n *Node, f float64, r rules, path, of string) {
	limit := func(s string, otherwise float64) float64 {
		if x, err := strconv.ParseFloat(s, 64); err == nil {
			return x
		}
		return otherwise
	}
	text := strconv.FormatFloat(f, 'g', -1, 64) + of
	switch {
	case f < limit(r.min, math.Inf(-1)):
		d.fail(n, path, "", "%s is too small, the minimum is %s", text, r.min)
	case f > limit(r.max, math.Inf(1)):
		d.fail(n, path, "", "%s is too large, the maximum is %s", text, r.max)
	case f <= limit(r.above, math.Inf(-1)):
		d.fail(n, path, "", "%s is too small, it must be above %s", text, r.above)
	}
}
