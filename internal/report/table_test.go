package report

import "testing"

func TestSparkline(t *testing.T) {
	for want, values := range map[string][]float64{
		"":         nil,
		"██":       {5, 5},
		"▁▃▅▇█":    {0.5, 2, 4, 6, 7.5},
		"█·▅":      {2, 0, 1},
		"··":       {0, 0},
		"▂▃▄▅▆▇██": {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8},
	} {
		if got := sparkline(values, 8); got != want {
			t.Errorf("%v is drawn %q, want %q", values, got, want)
		}
	}
}
