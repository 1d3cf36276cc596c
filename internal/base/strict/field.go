package strict

import (
	"reflect"
	"slices"
	"strings"
)

// Shorthander is a struct that a single value may stand for: the value of one of its keys.
type Shorthander interface {
	// Shorthand returns that key.
	Shorthand() string
}

// Alternator is a struct with keys that exclude each other. Where Set puts one of
// them, the others of its group go.
type Alternator interface {
	// Alternatives returns the groups.
	Alternatives() [][]string
}

// Decoder is a type that decodes itself. It reports problems and goes on.
type Decoder interface {
	DecodeNode(n *Node, path string, report func(Problem))
}

// Chooser is a field that one of several keys of its struct fills, each with a value of a
// type of its own. Its tag is yaml:",choice".
type Chooser interface {
	// Choices are the keys, in order; they are the same for every value of the type.
	Choices() []Choice
	// Choose takes the key that the document has, and what stands there: an addressable
	// value of the key's type.
	Choose(key string, value reflect.Value)
}

// Choice is one key of a Chooser.
type Choice struct {
	Key  string
	Type reflect.Type
}

// field is one key of a struct.
type field struct {
	name  string
	index []int
	typ   reflect.Type
	rules rules
	// choice says that the key is one of the Chooser at index.
	choice bool
}

// fields returns the keys of a struct in order, those of embedded structs among them.
func fields(t reflect.Type) []field {
	var fs []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case option == "inline":
			for _, inner := range fields(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fs = append(fs, inner)
			}
		case option == "choice":
			for _, c := range reflect.New(f.Type).Interface().(Chooser).Choices() {
				fs = append(fs, field{name: c.Key, index: []int{i}, typ: c.Type, choice: true})
			}
		case name != "" && name != "-":
			fs = append(fs, field{name: name, index: []int{i}, typ: f.Type, rules: parseRules(f.Tag.Get("jsonschema"))})
		}
	}
	return fs
}

// rest is the index of a struct's field that takes the keys which no other does, a map with
// the tag `yaml:",rest"`.
func rest(t reflect.Type) (index int, ok bool) {
	for i := range t.NumField() {
		if _, option, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); option == "rest" {
			return i, true
		}
	}
	return 0, false
}

func names(fs []field) []string {
	ns := make([]string, len(fs))
	for i, f := range fs {
		ns[i] = f.name
	}
	return ns
}

// shorthand is the key that a single value stands for in t, "" where it may not.
func shorthand(t reflect.Type) string {
	if s, ok := reflect.Zero(t).Interface().(Shorthander); ok {
		return s.Shorthand()
	}
	return ""
}

// standsFor tells whether n is the value of one key that stands for all of t: a single
// value, or a list where that key takes one.
func standsFor(n *Node, t reflect.Type) bool {
	key := shorthand(t)
	if key == "" || n.Kind != List {
		return key != "" && n.scalar()
	}
	return slices.ContainsFunc(fields(t), func(f field) bool { return f.name == key && f.typ.Kind() == reflect.Slice })
}

func alternatives(t reflect.Type) [][]string {
	if a, ok := reflect.Zero(t).Interface().(Alternator); ok {
		return a.Alternatives()
	}
	return nil
}
