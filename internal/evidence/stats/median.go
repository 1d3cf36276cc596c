package stats

import "slices"

// Median is the middle one of values, of an even number the mean of the two in the middle; 0 of none. Values keep their order.
func Median[T int64 | float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	switch n := len(sorted); {
	case n == 0:
		return 0
	case n%2 == 0:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	default:
		return sorted[n/2]
	}
}
