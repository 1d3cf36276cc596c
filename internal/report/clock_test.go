package report

import (
	"testing"

	"skerry/internal/report/series"
)

// What a second counted is drawn within it: an event at 6.3 s stands before the drop of second 6.
func TestABinIsDrawnAtItsMiddle(t *testing.T) {
	s := line("ok", "good", 1, series.Moments{5, 6}, series.Values{100, 0})
	if s.Points[0].X != 5.5 || s.Points[1].X != 6.5 {
		t.Errorf("%+v", s.Points)
	}
}
