package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram reads a trial's log of a name ("READ.service"), merged over its intervals; nil where
// there is none, or one without intervals. Values are microseconds.
func (d *Dir) Histogram(id int, name string) (sum *hdrhistogram.Histogram, err error) {
	err = readIntervals(filepath.Join(d.trialDir(id), name+histogramExt), func(_ float64, h *hdrhistogram.PackedHistogram) { sum = MergeHistogram(sum, h) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return sum, nil
}

// MergeHistogram adds an interval to a sum, which is made where there is none yet.
func MergeHistogram(sum *hdrhistogram.Histogram, h *hdrhistogram.PackedHistogram) *hdrhistogram.Histogram {
	if sum == nil {
		sum = hdrhistogram.New(h.LowestTrackableValue(), h.HighestTrackableValue(), int(h.SignificantFigures()))
	}
	h.MergeInto(sum)
	return sum
}

// Intervals calls f for every interval of a trial's *.hdr logs, log after log by name
// ("READ.service"), with the seconds from the log's first interval to its begin. The histogram
// holds microseconds and is f's to keep. Of a damaged log the intervals before the damage are
// told; the logs after it are read as well.
func (d *Dir) Intervals(id int, f func(name string, at float64, h *hdrhistogram.PackedHistogram)) error {
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
			damage = append(damage, readIntervals(filepath.Join(d.trialDir(id), e.Name()), func(at float64, h *hdrhistogram.PackedHistogram) { f(name, at, h) }))
		}
	}
	return errors.Join(damage...)
}

// readIntervals reads a log. Its histograms are packed, because a second uses few of the 36,000
// buckets that three digits up to an hour have. The library's own reader of logs fills and scans
// all of them, which is what most of a report's time went into.
func readIntervals(path string, f func(at float64, h *hdrhistogram.PackedHistogram)) (err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	defer func() {
		// The library panics on some corrupt lines; those are damage as any other.
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v", path, ErrDamaged, p)
		}
	}()
	var first float64
	n, text := 0, false
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' || line[0] == '"' { // comments and the legend
			continue
		}
		text = true
		start, payload, ok := splitInterval(string(line))
		if !ok {
			continue
		}
		at, err := strconv.ParseFloat(start, 64)
		if err != nil {
			return fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
		}
		h, err := hdrhistogram.DecodePacked([]byte(payload))
		if err != nil {
			return fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
		}
		if n == 0 {
			first = at
		}
		n++
		f(at-first, h)
	}
	if n == 0 && text {
		return fmt.Errorf("%s: %w: not an HdrHistogram log", path, ErrDamaged)
	}
	return nil
}

// splitInterval parts a line of HdrHistogram's log, format 1.3: [Tag=T,]start,length,maximum,histogram.
func splitInterval(line string) (start, histogram string, ok bool) {
	if strings.HasPrefix(line, "Tag=") {
		_, line, _ = strings.Cut(line, ",")
	}
	fields := strings.SplitN(line, ",", 4)
	if len(fields) < 4 {
		return "", "", false
	}
	return fields[0], fields[3], true
}
