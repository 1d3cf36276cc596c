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

// Histogram returns a trial's log of a name ("READ.service"), merged over its intervals. It is nil if there is no log
// or no interval. Values are microseconds.
func (d *Dir) Histogram(id int, name string) (sum *hdrhistogram.Histogram, err error) {
	err = readIntervals(filepath.Join(d.trialDir(id), name+histogramExt),
		func(_ float64, h *hdrhistogram.PackedHistogram) { sum = MergeHistogram(sum, h) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return sum, nil
}

// MergeHistogram adds an interval to sum, and creates sum if it is nil.
func MergeHistogram(sum *hdrhistogram.Histogram, h *hdrhistogram.PackedHistogram) *hdrhistogram.Histogram {
	if sum == nil {
		sum = hdrhistogram.New(h.LowestTrackableValue(), h.HighestTrackableValue(), int(h.SignificantFigures()))
	}
	h.MergeInto(sum)
	return sum
}

// Intervals calls f for every interval of a trial's *.hdr logs, log by log in the order of names. at is in seconds
// since the log's first interval. f may keep the histogram, which is in microseconds. f receives the intervals before a
// damage, and those of the other logs.
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
			damage = append(damage, readIntervals(filepath.Join(d.trialDir(id), e.Name()),
				func(at float64, h *hdrhistogram.PackedHistogram) { f(name, at, h) }))
		}
	}
	return errors.Join(damage...)
}

// readIntervals reads a log into packed histograms, because a second uses few of the 36,000 buckets of three digits up
// to an hour. The library's log reader fills and scans all of them, which dominated the time of reports.
func readIntervals(path string, f func(at float64, h *hdrhistogram.PackedHistogram)) (err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	defer func() {
		// The library panics on some corrupt lines.
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

// splitInterval splits a line of an HdrHistogram log, format 1.3: [Tag=T,]start,length,maximum,histogram.
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
