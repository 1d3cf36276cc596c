package topology

import (
	"fmt"
	"path"
	"strings"

	"skerry/internal/base/suggest"
)

// IsPattern tells whether a name can only mean links: a pair of ends, or ends with * and ?.
func IsPattern(name string) bool { return strings.ContainsAny(name, "~*?[") }

// Match tells whether a pattern names a link, from A to B or from B to A. A pattern is the ID of
// a link; a pair "X~Y" with either end first, which means all links between the two; one of a
// pair's links, "X~Y#1" by its number or "X~Y#spare" by its name; or a node, which means all its
// links, seen from it. X, Y and what follows # may hold * and ?.
func Match(pattern, id, a, b string) (forward, backward bool, err error) {
	if pattern == id {
		return true, false, nil
	}
	ends, which, single := strings.Cut(pattern, "#")
	left, right, pair := strings.Cut(ends, "~")
	if !pair {
		right = "*"
	}
	match := func(pattern, name string) (is bool) {
		if is, matchErr := path.Match(pattern, name); matchErr == nil {
			return is
		}
		err = fmt.Errorf("pattern %q: %w", pattern, path.ErrBadPattern)
		return false
	}
	of := !single || match(which, ownName(id, a, b))
	there, back := match(left, a) && match(right, b), match(left, b) && match(right, a)
	return there && of, back && of && !(there && of), err
}

// ownName distinguishes a link from the others between the same nodes: its number, or its name.
func ownName(id, a, b string) string {
	if id == ID(a, b) {
		return "1"
	}
	return strings.TrimPrefix(id, ID(a, b)+"#")
}

// NearestLink is the name of a link, or of a node, that somebody may have meant; "" for none.
func NearestLink(pattern string, links []Link) string {
	var known []string
	for _, l := range links {
		known = append(known, l.ID, l.B+"~"+l.A, l.A, l.B)
	}
	return suggest.Nearest(pattern, known)
}
