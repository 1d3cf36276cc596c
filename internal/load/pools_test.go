package load

import (
	"slices"
	"testing"
	"time"

	"skerry/internal/record"
)

func TestMergeIntervals(t *testing.T) {
	at := time.Unix(100, 0)
	a := Interval{T: 3, Start: at, Length: time.Second, InFlight: 2, Writes: []uint64{1}}
	a.OK = 5
	a.Operations = map[string]*Operation{"READ": {Counts: Counts{OK: 5}, Returns: map[string]int64{}}}
	a.Errors = []ErrorCount{{Operation: "READ", Class: "timeout", Count: 1}}
	b := Interval{T: 3, Start: at.Add(3 * record.WriteSlot), Length: time.Second, InFlight: 1, Writes: []uint64{1 << 62}}
	b.OK = 7
	b.Operations = map[string]*Operation{"READ": {Counts: Counts{OK: 7}, Returns: map[string]int64{}}}
	got := mergeIntervals([]PoolInterval{{"a", a}, {"b", b}})
	if got.OK != 12 || got.InFlight != 3 || got.Length != time.Second || !got.Start.Equal(at) || got.T != 3 || len(got.Pools) != 2 {
		t.Errorf("merged to %+v", got)
	}
	if got.Operations["a.READ"].OK != 5 || got.Operations["b.READ"].OK != 7 || len(got.Operations) != 2 ||
		got.Errors[0].Operation != "a.READ" {
		t.Errorf("operations %v, errors %v, want each under its workload", got.operationNames(), got.Errors)
	}
	if want := []uint64{1, 1 << 1}; !slices.Equal(got.Writes, want) {
		t.Errorf("writes %b, want %b: the second began three slots later", got.Writes, want)
	}
	alone := mergeIntervals([]PoolInterval{{"", a}})
	if alone.Operations["READ"].OK != 5 || len(alone.Pools) != 1 {
		t.Errorf("merging one result gives %+v", alone)
	}
}

func TestMergeResults(t *testing.T) {
	at := time.Unix(100, 0)
	a := Result{Started: at, Duration: 2 * time.Second, Stopped: stoppedAsked, Stuck: 1}
	b := Result{Started: at.Add(time.Second), Duration: 3 * time.Second, Stopped: stoppedOperations, Warnings: []string{"late"}}
	got := mergeResults([]PoolResult{{"a", a}, {"b", b}})
	if got.Duration != 4*time.Second || got.Stopped != stoppedOperations || got.Stuck != 1 ||
		!slices.Equal(got.Warnings, []string{"b: late"}) {
		t.Errorf("merged to %+v", got)
	}
}
