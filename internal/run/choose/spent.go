package choose

import (
	"time"

	"skerry/internal/record"
)

// period is a time in which the contest measured.
type period struct{ from, to time.Time }

// spend takes a run into what the contest has taken, and returns by how many seconds that is longer
// now: from its begin to its end, attempts that were run again among them, but for what ran beside it.
//
//	run 1  ├──────────────┤            14 s
//	run 2       ├──────────────┤        5 s more
func (c *Contest) spend(d *record.Dir) (seconds float64) {
	if d == nil {
		return 0
	}
	now := period{d.Run.Started, d.Run.Finished}
	least := 0.0
	for _, t := range d.Summary.Trials {
		least += t.SetupS + t.WarmupS + t.DurationS
	}
	if now.to.Before(now.from) { // its end was not recorded
		now.to = now.from.Add(time.Duration(least * float64(time.Second)))
	}
	left := []period{now}
	for _, b := range c.busy {
		var rest []period
		for _, p := range left {
			rest = append(rest, p.without(b)...)
		}
		left = rest
	}
	c.busy = append(c.busy, now)
	for _, p := range left {
		seconds += p.to.Sub(p.from).Seconds()
	}
	return seconds
}

// without is what is left of a period where another is taken out.
func (p period) without(o period) (left []period) {
	if !o.from.Before(p.to) || !p.from.Before(o.to) {
		return []period{p}
	}
	if p.from.Before(o.from) {
		left = append(left, period{p.from, o.from})
	}
	if o.to.Before(p.to) {
		left = append(left, period{o.to, p.to})
	}
	return left
}
