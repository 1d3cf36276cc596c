package webdata

// limits bound what a trial's document holds, so that a report stays small enough to send
// by mail: about five megabytes for a hundred trials.
type limits struct {
	points     int // of the timeline
	nodeValues int // of all series of all nodes together
	nodes      int // that are shown each on its own
	heat       int // columns of the heat map
	links      int
	pairs      int
}

// limitsFor gives few trials all they have and many a share of the whole.
func limitsFor(trials int) limits {
	share := func(whole, least, most int) int { return min(most, max(least, whole/max(1, trials))) }
	return limits{points: share(60_000, 120, 1200), nodeValues: share(420_000, 3000, 120_000), nodes: 24,
		heat: share(4000, 40, 120), links: share(200_000, 500, 4000), pairs: share(200_000, 500, 4000)}
}
