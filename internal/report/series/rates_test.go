package series

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/record"
)

func TestRates(t *testing.T) {
	seconds := []record.Second{{T: -1, Length: 1}, {T: 0, Length: 1}, {T: 1, Length: 1}, {T: 2, Length: 1}, {T: 3, Length: 1}}
	rows := []record.ErrorSecond{
		{T: 1, Operation: "READ", Outcome: "unknown", Class: "timeout", Count: 4},
		{T: 1, Operation: "UPDATE", Outcome: "unknown", Class: "timeout", Count: 2},
		{T: 3, Operation: "READ", Outcome: "failed", Class: "refused", Count: 1},
	}
	got := ErrorRates(rows, seconds, 3)
	want := &Rates{BinS: 2, T: Moments{-1, 0, 2}, Names: []string{"failed refused", "unknown timeout"}, Rate: []Values{{0, 0, 0.5}, {0, 3, 0}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors by class (-want +got):\n%s", diff)
	}
	if got := ErrorRates(nil, seconds, 3); got != nil {
		t.Errorf("without errors %+v, want nil", got)
	}
	pools := PoolRates([]record.PoolSecond{{Pool: "readers", Second: record.Second{T: 0, OK: 8}},
		{Pool: "writers", Second: record.Second{T: 0, OK: 3}}}, seconds[1:2], 10)
	if diff := cmp.Diff(&Rates{BinS: 1, T: Moments{0}, Names: []string{"readers", "writers"}, Rate: []Values{{8}, {3}}}, pools); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
}
