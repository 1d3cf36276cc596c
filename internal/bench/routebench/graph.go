package routebench

import (
	"math"
	"time"

	"skerry/internal/lab"
)

// best returns the shortest round trip between every two nodes over links that are up
// (Floyd and Warshall), math.MaxInt64 where there is no way.
func best(nodes []string, links []lab.Link) [][]time.Duration {
	index := make(map[string]int, len(nodes))
	way := make([][]time.Duration, len(nodes))
	for i, n := range nodes {
		index[n] = i
		way[i] = make([]time.Duration, len(nodes))
		for j := range way[i] {
			if i != j {
				way[i][j] = math.MaxInt64
			}
		}
	}
	for _, l := range links {
		if l.AB.Down || l.BA.Down {
			continue
		}
		a, b, rtt := index[l.A], index[l.B], l.AB.Latency+l.BA.Latency
		way[a][b], way[b][a] = min(way[a][b], rtt), min(way[b][a], rtt)
	}
	for k := range nodes {
		for i := range nodes {
			for j := range nodes {
				if way[i][k] != math.MaxInt64 && way[k][j] != math.MaxInt64 {
					way[i][j] = min(way[i][j], way[i][k]+way[k][j])
				}
			}
		}
	}
	return way
}
