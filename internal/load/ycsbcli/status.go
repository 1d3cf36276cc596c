package ycsbcli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

type status struct {
	out   io.Writer
	shown bool
	plan  plan

	started time.Time
	total   int64
	since   load.Totals
	length  time.Duration
	ended   time.Time // end of the last interval
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

type histogramLogs struct {
	// paths returns the files for service and response times of an operation; "" for none.
	paths func(operation string) (service, response string)
	open  map[string]*logFile
}

type logFile struct {
	io.Closer
	*ycsb.HDRLog
}

// newHistogramLogs logs to OPERATION.service.hdr and OPERATION.response.hdr in the folder of --hdr,
// or to YCSB's file names if the properties enable it.
func newHistogramLogs(o Options, s ycsb.Settings) (*histogramLogs, error) {
	l := &histogramLogs{open: map[string]*logFile{}}
	switch {
	case o.HDR != "":
		if err := os.MkdirAll(o.HDR, 0o755); err != nil {
			return nil, fmt.Errorf("create the folder for histogram logs: %w", err)
		}
		l.paths = func(op string) (string, string) {
			return filepath.Join(o.HDR, op+".service.hdr"), filepath.Join(o.HDR, op+".response.hdr")
		}
	case s.HDR:
		l.paths = func(op string) (service, response string) {
			service, response = s.HDRPath+op+".hdr", s.HDRPath+"Intended-"+op+".hdr"
			switch s.Interval {
			case ycsb.IntervalOp:
				response = ""
			case ycsb.IntervalIntended:
				service, response = "", service
			}
			return service, response
		}
	}
	return l, nil
}

func (l *histogramLogs) add(i load.Interval) error {
	if l.paths == nil {
		return nil
	}
	for name, op := range i.Operations {
		service, response := l.paths(name)
		if err := errors.Join(l.write(name, service, i, op.Latency.Service), l.write(name, response, i, op.Latency.Response)); err != nil {
			return err
		}
	}
	return nil
}

func (l *histogramLogs) write(name, path string, i load.Interval, h load.Histogram) error {
	if path == "" || h.Count() == 0 {
		return nil
	}
	f := l.open[path]
	if f == nil {
		out, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("create a histogram log: %w", err)
		}
		log, err := ycsb.NewHDRLog(out, name, i.Start)
		f = &logFile{out, log}
		l.open[path] = f
		if err != nil {
			return err
		}
	}
	return f.Interval(i.Start, i.Length, h.Micros())
}

func (l *histogramLogs) close() error {
	var errs []error
	for _, f := range l.open {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
