package verdict

import (
	"math"
	"testing"
	"time"

	"skerry/internal/load"
	"skerry/internal/record"
)

var machine = DriverMachine{Cores: 2, DriverCores: 2}

// second has 90 operations of 10 ms and 10 delayed ones.
func second(heldFor time.Duration, change func(*DriverSecond)) DriverSecond {
	h := &load.Disturbance{For: 100 * time.Millisecond, Steal: 50 * time.Millisecond, Ended: 10}
	s := DriverSecond{Interval: load.Interval{Length: time.Second, Disturbance: h}}
	s.OK = 100
	for range 90 {
		s.Latency.Response.Record(10 * time.Millisecond)
		s.Late.Record(100 * time.Microsecond)
	}
	for range 10 {
		s.Latency.Response.Record(heldFor)
		h.Response.Record(heldFor)
		s.Late.Record(20 * time.Millisecond)
		h.Late.Record(20 * time.Millisecond)
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestMeasureSteal(t *testing.T) {
	for name, tt := range map[string]struct {
		s           DriverSecond
		share       float64
		left        int64
		moved       float64
		by          string
		late        float64 // us, outside of the marked spans
		lateNotFull float64
	}{
		"nothing changed":  {second(10*time.Millisecond, nil), 0.1, 90, 0, "goodput", 100, 20000},
		"p95, p99 changed": {second(20*time.Millisecond, nil), 0.1, 90, 0.5, "p99", 100, 20000},
		"by other work": {second(20*time.Millisecond, func(s *DriverSecond) { s.Disturbance.Steal, s.Foreign = 0, 0.3 }), 0.1, 90, 0.5,
			"p99", 100, 20000},
		"by the trial": {second(20*time.Millisecond, func(s *DriverSecond) { s.Disturbance.Steal, s.Foreign = 0, 0.02 }), 0, 100, 0,
			"goodput", 20000, 20000},
		"its cores full": {second(20*time.Millisecond, func(s *DriverSecond) { s.CPU = 1950 * time.Millisecond }), 0, 100, 0, "goodput",
			20000, 0},
		"its quota spent": {second(20*time.Millisecond, func(s *DriverSecond) { s.Throttled = 0.4 }), 0, 100, 0, "goodput", 20000, 0},
		"rate changed": {second(10*time.Millisecond, func(s *DriverSecond) { s.Disturbance.Ended = 0 }), 0.1, 90, 0.111, "goodput", 100,
			20000},
		"never held": {second(10*time.Millisecond, func(s *DriverSecond) { s.Disturbance = nil }), 0, 100, 0, "goodput", 20000, 20000},
	} {
		t.Run(name, func(t *testing.T) {
			got := MeasureSteal(machine, []DriverSecond{tt.s})
			if math.Abs(got.Share-tt.share) > 1e-9 || got.Left != tt.left || math.Abs(got.Moved-tt.moved) > 0.002 || got.MovedBy != tt.by {
				t.Errorf("share %g, %d left, %s changed by %g; want %g, %d, %s by %g", got.Share, got.Left, got.MovedBy, got.Moved, tt.share, tt.left,
					tt.by, tt.moved)
			}
			if !near(got.LateLeftP99US, tt.late) || !near(got.LateNotFullP99US, tt.lateNotFull) {
				t.Errorf("late by %g and %g us, want %g and %g", got.LateLeftP99US, got.LateNotFullP99US, tt.late, tt.lateNotFull)
			}
		})
	}
	if got := MeasureSteal(machine, nil); got != (record.Stolen{MovedBy: ""}) {
		t.Errorf("empty measurement: %+v", got)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 0.001*b }
