package runner

import (
	"slices"
	"time"

	"skerry/internal/record"
)

// took is how long trials have taken: those that formed a cluster, and those that reused an earlier one's. The
// former take minutes longer where clusters are worth sharing.
type took struct{ forming, reusing []time.Duration }

func (t *took) add(forms bool, d time.Duration) {
	if forms {
		t.forming = append(t.forming, d)
	} else {
		t.reusing = append(t.reusing, d)
	}
}

func (t took) known() bool { return len(t.forming)+len(t.reusing) > 0 }

// left is how long so many trials more will take.
func (t took) left(forming, reusing int) time.Duration {
	return median(t.forming, t.reusing)*time.Duration(forming) + median(t.reusing, t.forming)*time.Duration(reusing)
}

// median is the lower one, of instead where there is nothing else; 0 of nothing.
func median(times, instead []time.Duration) time.Duration {
	if len(times) == 0 {
		times = instead
	}
	if len(times) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(times))[(len(times)-1)/2]
}

// reuses tells whether a trial can run on what one with that footing has left.
func (r *run) reuses(id int, footing string) bool {
	return footing != "" && r.footings[id] == footing
}

// ahead counts those trials that will form a cluster, and those that will reuse one, where they run in this order
// after one with that footing.
func (r *run) ahead(on string, trials []record.Planned) (forming, reusing int) {
	for _, p := range trials {
		if r.reuses(p.ID, on) {
			reusing++
		} else {
			forming++
		}
		on = r.footings[p.ID]
	}
	return forming, reusing
}
