package strict

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

// structured says whether a field holds keys or items, so that it may be left empty.
func structured(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map || t.Kind() == reflect.Slice
}

// wanted is how messages call what a type takes.
func wanted(t reflect.Type) string {
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

// described is how messages call what was given.
func described(n *Node) string {
	if n.scalar() {
		return strconv.Quote(n.Scalar)
	}
	return n.Kind.String()
}

// mend is what to write in place of a value of the wrong type, "" where nobody knows.
func mend(n *Node, t reflect.Type) string {
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
		if plain := strings.NewReplacer(",", "", "_", "", " ", "", "'", "").Replace(s); n.Kind == Text && fits(plain, t) {
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

// fits says whether a number is one that a type holds.
func fits(s string, t reflect.Type) bool {
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

// literal is the node of a default.
func literal(s string) *Node {
	n := &Node{Kind: Text, Scalar: s}
	switch {
	case s == "true" || s == "false":
		n.Kind = Bool
	case isNumber(s):
		n.Kind = Number
	}
	return n
}
