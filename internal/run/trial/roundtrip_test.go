package trial

import (
	"testing"
	"time"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/lab"
	"skerry/internal/link"
)

// Of nodes at different distances, each with an eighth of the requests, the tail's round trip is the farthest one's.
func TestRoundTripOfAPercentile(t *testing.T) {
	var links []lab.Link
	var used []bottleneck.LinkUse
	for i := range 8 {
		q := link.Quality{Latency: time.Duration(i+1) * time.Millisecond}
		links = append(links, lab.Link{A: "node", B: "client", AB: q, BA: q})
		used = append(used, bottleneck.LinkUse{}, bottleneck.LinkUse{Use: bottleneck.Use{Used: 100}})
	}
	links = append(links, lab.Link{A: "node", B: "other", AB: link.Quality{Latency: time.Hour}})
	used = append(used, bottleneck.LinkUse{Use: bottleneck.Use{Used: 1e9}}, bottleneck.LinkUse{})
	for q, want := range map[float64]float64{0.5: 0.008, 0.99: 0.016} {
		if got := roundTrip(links, used, []string{"client"}, q); got != want {
			t.Errorf("quantile %g: %g s, want %g", q, got, want)
		}
	}
}
