package strict

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Shorthander is a struct that a document may abbreviate to the value of one of its keys.
type Shorthander interface {
	// Shorthand returns the key.
	Shorthand() string
}

// Alternator is a struct with keys that exclude each other. If Set sets one of them, it removes the others of the group.
type Alternator interface {
	// Alternatives returns the groups.
	Alternatives() [][]string
}

// Decoder is a type that decodes itself. It reports problems and continues.
type Decoder interface {
	DecodeNode(n *Node, path string, report func(Problem))
}

// Chooser is a field that one of several keys of its struct fills. Each key has its own type. The tag is yaml:",choice".
type Chooser interface {
	// Choices returns the keys in order. The result must be the same for all values of the type.
	Choices() []ChoiceKey
	// Choose sets the key of the document and its value, an addressable value of the key's type.
	Choose(key string, value reflect.Value)
}

// ChoiceKey is one key of a Chooser.
type ChoiceKey struct {
	Key  string
	Type reflect.Type
}

// field is one key of a struct.
type field struct {
	name  string
	index []int
	typ   reflect.Type
	rules rules
	// choice is true if the key belongs to the Chooser at index.
	choice bool
}

// fields returns the keys of a struct in order, including those of embedded structs.
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

// restField returns the index of the map with the tag `yaml:",rest"`, which receives all other keys.
func restField(t reflect.Type) (index int, ok bool) {
	for i := range t.NumField() {
		if _, option, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); option == "rest" {
			return i, true
		}
	}
	return 0, false
}

func fieldNames(fs []field) []string {
	ns := make([]string, len(fs))
	for i, f := range fs {
		ns[i] = f.name
	}
	return ns
}

// shorthand returns the key that a single value abbreviates in t, or "".
func shorthand(t reflect.Type) string {
	if s, ok := reflect.Zero(t).Interface().(Shorthander); ok {
		return s.Shorthand()
	}
	return ""
}

// standsFor reports whether n is a shorthand for t: a single value, or a list if the shorthand key is a list.
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

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// isStructured reports whether t holds keys or items. Such a field may be empty in the document.
func isStructured(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map || t.Kind() == reflect.Slice
}

// describeType names the values of a type in messages.
func describeType(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		return "a " + strings.ToLower(t.Name())
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Uint64:
		return "a whole number from 0 on"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		if s := shorthand(t); s != "" {
			return "its " + s + " or a mapping"
		}
	}
	return "a mapping"
}

// describeNode names a value of the document in messages.
func describeNode(n *Node) string {
	if n.scalar() {
		return strconv.Quote(n.Scalar)
	}
	return n.Kind.String()
}

// suggestFix returns the correction of a value of the wrong type, or "".
func suggestFix(n *Node, t reflect.Type) string {
	s := n.Scalar
	switch t.Kind() {
	case reflect.Slice:
		if n.scalar() {
			return fmt.Sprintf("write [%s]", s)
		}
	case reflect.Bool:
		switch strings.ToLower(s) {
		case "yes", "on", "1":
			return "write true"
		case "no", "off", "0":
			return "write false"
		}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		if plain := strings.NewReplacer(",", "", "_", "", " ", "", "'", "").Replace(s); n.Kind == Text && isNumberOf(plain, t) {
			return "write " + plain
		}
		if p, ok := strings.CutSuffix(s, "%"); ok && t.Kind() == reflect.Float64 {
			if f, err := strconv.ParseFloat(strings.TrimSpace(p), 64); err == nil {
				return "write " + strconv.FormatFloat(f/100, 'g', 6, 64)
			}
		}
	}
	return ""
}

// isNumberOf reports whether s is a number that t can hold.
func isNumberOf(s string, t reflect.Type) bool {
	var err error
	switch t.Kind() {
	case reflect.Float64:
		return isNumber(s)
	case reflect.Uint64:
		_, err = strconv.ParseUint(s, 10, 64)
	default:
		_, err = strconv.ParseInt(s, 10, 64)
	}
	return err == nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// scalarNode returns the node of a default value.
func scalarNode(s string) *Node {
	n := &Node{Kind: Text, Scalar: s}
	switch {
	case s == "true" || s == "false":
		n.Kind = Bool
	case isNumber(s):
		n.Kind = Number
	}
	return n
}
