package topology

import (
	"fmt"
	"path"
	"strings"

	"skerry/internal/base/spell"
)

// IsPattern tells whether a name can only mean links: a pair of ends, or ends with * and ?.
func IsPattern(name string) bool { return strings.ContainsAny(name, "~*?[") }

// Match tells whether a pattern names a link, from A to B or from B to A. A pattern is the ID of a
// link, "X~Y" with either end first, where X and Y may hold * and ?, or a node, which means all
// its links, seen from it.
func Match(pattern, id, a, b string) (forward, backward bool, err error) {
	if pattern == id {
		return true, false, nil
	}
	left, right, pair := strings.Cut(pattern, "~")
	if !pair {
		right = "*"
	}
	ends := [4]bool{}
	for i, try := range [4][2]string{{left, a}, {right, b}, {left, b}, {right, a}} {
		if ends[i], err = path.Match(try[0], try[1]); err != nil {
			return false, false, fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	forward = ends[0] && ends[1]
	return forward, !forward && ends[2] && ends[3], nil
}

// NearestLink is the name of a link, or of a node, that somebody may have meant; "" for none.
func NearestLink(pattern string, links []Link) string {
	var known []string
	for _, l := range links {
		known = append(known, l.ID, l.B+"~"+l.A, l.A, l.B)
	}
	return spell.Nearest(pattern, known)
}
