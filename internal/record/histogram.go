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

// Histograms reads a trial's *.hdr logs, each merged over its intervals, by name
// ("READ.service"). Values are microseconds.
func (d *Dir) Histograms(id int) (map[string]*hdrhistogram.Histogram, error) {
	entries, err := os.ReadDir(d.trialDir(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string]*hdrhistogram.Histogram{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), histogramExt)
		if !ok || e.IsDir() {
			continue
		}
		h, err := readHistogram(filepath.Join(d.trialDir(id), e.Name()))
		if err != nil {
			return out, err
		}
		if h != nil {
			out[name] = h
		}
	}
	return out, nil
}

// readHistogram merges a log's intervals; nil when it has none. The library panics on
// some corrupt lines; those are damage as any other.
func readHistogram(path string) (sum *hdrhistogram.Histogram, err error) {
	defer func() {
		if p := recover(); p != nil {
			sum, err = nil, fmt.Errorf("%s: %w: %v", path, ErrDamaged, p)
		}
	}()
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := hdrhistogram.NewHistogramLogReader(bytes.NewReader(b))
	for {
		h, err := r.NextIntervalHistogram()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
		}
		if h == nil && sum == nil && hasData(b) {
			return nil, fmt.Errorf("%s: %w: not an HdrHistogram log", path, ErrDamaged)
		}
		if h == nil {
			return sum, nil
		}
		if sum == nil {
			sum = h
			continue
		}
		sum.Merge(h)
	}
}

// hasData tells whether a log has lines beside comments (#) and the legend, whose
// names are quoted.
func hasData(log []byte) bool {
	for line := range bytes.Lines(log) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' && line[0] != '"' {
			return true
		}
	}
	return false
}
