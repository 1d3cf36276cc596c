// Package series is what charts draw of a trial, whoever draws them: its seconds, nodes,
// latencies and events, thinned to what a screen can show. Rates are means over a bin, latencies
// the highest of a bin's seconds, in microseconds: percentiles are never averaged. docs/report.md
// says more.
package series

// binOf is how many rows go into a bin so that there are no more than most.
func binOf(rows, most int) int { return max(1, (rows+most-1)/max(1, most)) }

// bins calls f with the first and last+1 row of every bin. Bins end at least where the warm-up
// does, so that none holds both: from is the first row of the measurement.
func bins(rows, from, size int, f func(a, b int)) {
	for a := 0; a < rows; {
		b := min(a+size, rows)
		if a < from {
			b = min(b, from)
		}
		f(a, b)
		a = b
	}
}
