package link

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// Step is a quality from a moment on.
type Step struct {
	At      time.Duration
	Quality Quality
}

// Steps is the profile that is first until the first step and from each step on what that
// step says; a trace that is replayed is one too. Steps at the same moment: the last counts.
//
//	quality │        ╭───────
//	        │  ╭─────╯ step 2
//	        │──╯ step 1
//	        └──────────────── t
func Steps(first Quality, steps ...Step) Profile {
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return ProfileFunc(func(t time.Duration) Quality {
		i := sort.Search(len(steps), func(i int) bool { return steps[i].At > t })
		if i == 0 {
			return first
		}
		return steps[i-1].Quality
	})
}
