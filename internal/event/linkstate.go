package event

import (
	"math/rand/v2"

	"skerry/internal/link"
)

// linkUp lets packets pass, over what came before it; what comes after it may take the
// link down again.
type linkUp Links

func (l *linkUp) check(s Stage, fail failure) { Links(*l).check(s, fail) }

func (l *linkUp) draw(s Stage, turn int, busy map[string]bool, r *rand.Rand) action {
	return newPulled(Links(*l).draw(s, turn, busy, r), "%s up", setDown(false), false)
}

func setDown(down bool) func(link.Quality) link.Quality {
	return func(q link.Quality) link.Quality {
		q.Down = down
		return q
	}
}

func (l *linkUp) limit(s Stage) int { return Links(*l).limit(s) }
