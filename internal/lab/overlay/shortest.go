package overlay

import "time"

// ShortestRTTs returns the round trip along the shortest path between every two nodes that
// the links join (Floyd and Warshall).
func ShortestRTTs(links []Link) map[string]map[string]time.Duration {
	rtts := map[string]map[string]time.Duration{}
	shorten := func(a, b string, rtt time.Duration) {
		if rtts[a] == nil {
			rtts[a] = map[string]time.Duration{a: 0}
		}
		if known, ok := rtts[a][b]; !ok || rtt < known {
			rtts[a][b] = rtt
		}
	}
	for _, l := range links {
		shorten(l.A, l.B, 2*l.Latency)
		shorten(l.B, l.A, 2*l.Latency)
	}
	for via, onward := range rtts {
		for a, row := range rtts {
			first, joined := row[via]
			if !joined {
				continue
			}
			for b, rest := range onward {
				shorten(a, b, first+rest)
			}
		}
	}
	return rtts
}
