package strict

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/suggest"
)

// rules are what the jsonschema tag says of a field.
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

// check holds a decoded value against the rules of its tag.
func (d *decoder) check(n *Node, v reflect.Value, r rules, path string) {
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
		d.bound(n, float64(v.Len()), rules{min: r.minLen, max: r.maxLen}, path, " entries")
	case reflect.Int, reflect.Int64:
		d.bound(n, float64(v.Int()), r, path, "")
	case reflect.Float64:
		d.bound(n, v.Float(), r, path, "")
	}
}

func (d *decoder) bound(n *Node, f float64, r rules, path, of string) {
	limit := func(s string, otherwise float64) float64 {
		if x, err := strconv.ParseFloat(s, 64); err == nil {
			return x
		}
		return otherwise
	}
	text := strconv.FormatFloat(f, 'g', -1, 64) + of
	switch {
	case f < limit(r.min, math.Inf(-1)):
		d.fail(n, path, "", "%s is too little, the least is %s", text, r.min)
	case f > limit(r.max, math.Inf(1)):
		d.fail(n, path, "", "%s is too much, the most is %s", text, r.max)
	case f <= limit(r.above, math.Inf(-1)):
		d.fail(n, path, "", "%s is too little, it must be above %s", text, r.above)
	}
}
