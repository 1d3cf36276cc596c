package report

import (
	"strings"
	"testing"

	"skerry/internal/evidence/stats"
)

// A bar's tip tells the figure that it is as high as: in the unit of the axis.
func TestTipsAreInTheUnitOfTheAxis(t *testing.T) {
	f := fixture{databases: []string{"redis"}, workloads: []string{"a"}, scales: []float64{1}, repetitions: 1, seconds: 12}
	m := newModel(open(t, f.make(t)))
	drawn := m.absolute(measure{"Transferred data", "MB", func(*cell) stats.Estimate { return stats.Estimate{N: 1, Mean: 7_250_000} }, 1e6})
	if chart := string(drawn[0].Chart); !strings.Contains(chart, ": 7.25 MB") || strings.Contains(chart, "7,250,000") {
		t.Errorf("the tip is in another unit than the axis: %s", chart)
	}
}
