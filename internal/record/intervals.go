package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Intervals calls f for every interval of a trial's *.hdr logs, log after log by name
// ("READ.service"), with the seconds from the log's first interval to its begin. The histogram
// holds microseconds and is f's to keep. Of a damaged log the intervals before the damage are
// told; the logs after it are read as well.
func (d *Dir) Intervals(id int, f func(name string, at float64, h *hdrhistogram.Histogram)) error {
	entries, err := os.ReadDir(d.trialDir(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var damage []error
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), histogramExt); ok && !e.IsDir() {
			damage = append(damage, readIntervals(filepath.Join(d.trialDir(id), e.Name()), func(at float64, h *hdrhistogram.Histogram) { f(name, at, h) }))
		}
	}
	return errors.Join(damage...)
}

// readIntervals reads a log. The library panics on some corrupt lines; those are damage as
// any other.
func readIntervals(path string, f func(at float64, h *hdrhistogram.Histogram)) (err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v", path, ErrDamaged, p)
		}
	}()
	r := hdrhistogram.NewHistogramLogReader(bytes.NewReader(b))
	var first int64
	for n := 0; ; n++ {
		h, err := r.NextIntervalHistogram()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
		case h == nil && n == 0 && hasData(b):
			return fmt.Errorf("%s: %w: not an HdrHistogram log", path, ErrDamaged)
		case h == nil:
			return nil
		case n == 0:
			first = h.StartTimeMs()
		}
		f(float64(h.StartTimeMs()-first)/1000, h)
	}
}
