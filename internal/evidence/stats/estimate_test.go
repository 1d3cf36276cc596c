package stats

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var near = cmpopts.EquateApprox(1e-6, 1e-9)

func TestEstimateMean(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   Estimate
	}{
		{"none", nil, Estimate{}},
		{"one", []float64{7}, Estimate{N: 1, Mean: 7}},
		{"equal", []float64{3, 3, 3}, Estimate{N: 3, Mean: 3}},
		// t(0.975; 2) = 4.302653, SD = 1, so 4.302653/sqrt(3).
		{"three", []float64{1, 2, 3}, Estimate{N: 3, Mean: 2, SD: 1, HalfWidth: 2.4841377}},
		// t(0.975; 1) = 12.706205, SD = sqrt(2).
		{"two", []float64{10, 12}, Estimate{N: 2, Mean: 11, SD: math.Sqrt2, HalfWidth: 12.7062047}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, EstimateMean(c.values), near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEstimateRatio(t *testing.T) {
	a, b := EstimateMean([]float64{19, 20, 21}), EstimateMean([]float64{9.5, 10, 10.5})
	r := EstimateRatio(a, b)
	// Both have a relative variance of (0.05)^2/3, so that df = 4 and
	// the half-width is 2 x t(0.975; 4) x 0.05 x sqrt(2/3) = 0.226696.
	if diff := cmp.Diff([]float64{2, 0.2266958}, []float64{r.Mean, r.HalfWidth}, near); diff != "" {
		t.Errorf("ratio and half-width (-want +got):\n%s", diff)
	}
	for name, r := range map[string]Estimate{
		"by zero":             EstimateRatio(a, Estimate{}),
		"of zero":             EstimateRatio(EstimateMean([]float64{0, 0}), b),
		"without repetitions": EstimateRatio(EstimateMean([]float64{4}), EstimateMean([]float64{2})),
	} {
		if r.HasInterval() || math.IsNaN(r.Mean) || math.IsInf(r.Mean, 0) {
			t.Errorf("%s: %+v, want a number without an interval", name, r)
		}
	}
}
