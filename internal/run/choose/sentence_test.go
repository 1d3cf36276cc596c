package choose

import (
	"testing"

	"skerry/internal/evidence/race"
)

// A candidate that waits for its first trial is in no answer's way.
func TestAnswerBeforeEverybodyWasMeasured(t *testing.T) {
	measured := Verdict{ID: "a", Label: "a", Figures: []Figure{{Name: "p99", Mean: 3}}}
	waiting := Verdict{ID: "b", Label: "b", Out: race.Waiting}
	if said := (Answer{Candidates: []Verdict{measured, waiting}}).changes(); len(said) > 0 {
		t.Errorf("%q", said)
	}
}
