package svg

import (
	"cmp"
	"math"
	"slices"
)

// drawNames writes the names of points beside them: on the right where there is room, else on the left, each
// below those that would be in its way.
func drawNames(c *canvas, series []Series, x, y ruler) {
	type name struct {
		left, right, at float64
		text            string
	}
	var names []name
	for _, s := range series {
		for _, p := range s.Points {
			if p.Name == "" || math.IsNaN(p.Y) {
				continue
			}
			px, w := x.at(p.X), textWidth(p.Name)
			n := name{px + 8, px + 8 + w, y.at(p.Y), p.Name}
			if n.right > x.to+marginRight {
				n.left, n.right = px-8-w, px-8
			}
			names = append(names, n)
		}
	}
	slices.SortStableFunc(names, func(a, b name) int { return cmp.Compare(a.at, b.at) })
	for i := range names {
		n := &names[i]
		for _, above := range names[:i] { // from the top down, so that none is pushed back into another
			if n.left < above.right && above.left < n.right && n.at-above.at < fontSize+2 {
				n.at = above.at + fontSize + 2
			}
		}
		c.text("key", "start", n.left, n.at+fontSize/3, n.text)
	}
}
