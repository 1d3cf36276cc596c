package ycsb

import (
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// HDRLog writes a HdrHistogram interval log (format 1.3, compressed V2 histograms): one
// line an interval, as HdrHistogram's plotters read it.
type HDRLog struct {
	w    *hdrhistogram.HistogramLogWriter
	name string
}

// NewHDRLog writes the head of a log for a series that begins at start.
func NewHDRLog(out io.Writer, series string, start time.Time) (*HDRLog, error) {
	l := &HDRLog{hdrhistogram.NewHistogramLogWriter(out), series}
	l.w.SetBaseTime(start.UnixMilli())
	for _, step := range []func() error{
		func() error { return l.w.OutputComment("[Logging for: " + series + ", in microseconds]") },
		l.w.OutputLogFormatVersion,
		func() error { return l.w.OutputStartTime(start.UnixMilli()) },
		l.w.OutputLegend,
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("writing the histogram log of %s: %w", series, err)
		}
	}
	return l, nil
}

// Interval adds one interval. It sets the histogram's times.
func (l *HDRLog) Interval(start time.Time, length time.Duration, h *hdrhistogram.Histogram) error {
	h.SetStartTimeMs(start.UnixMilli())
	h.SetEndTimeMs(start.Add(length).UnixMilli())
	if err := l.w.OutputIntervalHistogram(h); err != nil {
		return fmt.Errorf("writing the histogram log of %s: %w", l.name, err)
	}
	return nil
}
