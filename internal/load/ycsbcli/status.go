package ycsbcli

import (
	"fmt"
	"io"
	"time"

	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// status writes YCSB's status lines. Figures are of the time since the last line.
type status struct {
	out   io.Writer
	shown bool
	plan  plan

	started time.Time
	total   int64
	since   load.Totals
	length  time.Duration
	ended   time.Time // of the last interval
}

func newStatus(out io.Writer, shown bool, p plan) *status {
	s := &status{out: out, shown: shown, plan: p, started: time.Now()}
	s.ended = s.started
	s.writeLine()
	return s
}

func (s *status) add(i load.Interval) {
	s.total += i.Ended()
	s.since.Merge(i.Totals)
	s.length += i.Length
	s.ended = i.Start.Add(i.Length)
	if s.length >= s.plan.settings.StatusInterval-time.Second/2 {
		s.writeLine()
	}
}

// finish writes what is left when the drive has ended.
func (s *status) finish() {
	if s.length > 0 {
		s.writeLine()
	}
}

func (s *status) writeLine() {
	if s.shown {
		fmt.Fprintln(s.out, ycsb.Status{
			Label: s.plan.settings.Label, Now: s.ended, Elapsed: s.ended.Sub(s.started), Total: s.total,
			Current: rate(s.since.Ended(), s.length), Remaining: s.remaining(),
			Series: s.since.Series(s.plan.settings.Interval),
		})
	}
	s.since, s.length = load.Totals{}, 0
}

// remaining is at the pace so far.
func (s *status) remaining() time.Duration {
	all := s.plan.spec.Operations
	if s.plan.spec.Phase == load.PhaseLoad {
		all = s.plan.spec.Workload.InsertCount
	}
	elapsed := s.ended.Sub(s.started)
	var left time.Duration
	if all > s.total && s.total > 0 {
		left = time.Duration(float64(elapsed) * float64(all-s.total) / float64(s.total))
	}
	if d := s.plan.spec.Duration; d > 0 {
		byTime := max(0, d+s.plan.spec.Warmup-elapsed)
		if left == 0 || byTime < left {
			left = byTime
		}
	}
	return left
}

func rate(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
