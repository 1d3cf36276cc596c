package ycsb

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Settings are the properties of YCSB's client and measurements: how a workload is
// driven and shown, not what it is.
type Settings struct {
	Threads int
	Target  float64 // operations a second; 0 is unlimited
	// MaxExecutionTime ends a run; 0 is no bound.
	MaxExecutionTime time.Duration
	// Interval is what is measured: "op" (service time), "intended" (response time),
	// "both", or "" where the driver is to choose.
	Interval       string
	Percentiles    []float64
	Status         bool // write status lines
	StatusInterval time.Duration
	Label          string
	// HDR asks for histogram logs, HDRPath is what their names begin with.
	HDR     bool
	HDRPath string
}

// Measurement intervals.
const (
	IntervalOp       = "op"
	IntervalIntended = "intended"
	IntervalBoth     = "both"
)

// ParseSettings reads them from properties. Errors are as those of Parse.
func ParseSettings(p Properties) (Settings, error) {
	r := &reader{p: p}
	s := Settings{
		Threads:          int(r.integer("threadcount", 1, 1, 1_000_000)),
		Target:           r.number("target", 0, 0, 1e9),
		MaxExecutionTime: time.Duration(r.integer("maxexecutiontime", 0, 0, 1<<31)) * time.Second,
		Status:           r.boolean("status", false),
		StatusInterval:   time.Duration(r.integer("status.interval", 10, 1, 1<<31)) * time.Second,
		Label:            p["label"],
		HDR:              r.boolean("hdrhistogram.fileoutput", false),
		HDRPath:          p["hdrhistogram.output.path"],
		Percentiles:      DefaultPercentiles(),
	}
	if _, ok := p["measurement.interval"]; ok {
		s.Interval = r.choice("measurement.interval", IntervalOp, IntervalOp, IntervalIntended, IntervalBoth)
	}
	if text := r.text("hdrhistogram.percentiles", ""); text != "" {
		s.Percentiles = nil
		for _, part := range strings.Split(text, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			if err != nil || !(v >= 0 && v <= 100) {
				r.fail("hdrhistogram.percentiles", "%q is not a percentile between 0 and 100", part)
				break
			}
			s.Percentiles = append(s.Percentiles, v)
		}
	}
	if len(r.errs) > 0 {
		return Settings{}, fmt.Errorf("%w: %w", ErrWorkload, errors.Join(r.errs...))
	}
	return s, nil
}
