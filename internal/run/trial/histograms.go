package trial

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"skerry/internal/load"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
)

// histograms collects HdrHistogram logs, one line a second, for each operation and clock.
// They are kept in memory until the trial ends: about 1 KB a line.
type histograms struct {
	logs map[string]*histogramLog
}

type histogramLog struct {
	text bytes.Buffer
	log  *ycsb.HDRLog
}

// add takes one interval of the measurement, which began at zero.
func (h *histograms) add(zero time.Time, i load.Interval) error {
	for name, o := range i.Operations {
		for clock, times := range map[string]load.Histogram{"service": o.Latency.Service, "response": o.Latency.Response} {
			if times.Count() == 0 {
				continue
			}
			l, err := h.log(name+"."+clock, zero)
			if err != nil {
				return err
			}
			if err := l.log.Interval(i.Start, i.Length, times.Micros()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *histograms) log(name string, zero time.Time) (*histogramLog, error) {
	if l, ok := h.logs[name]; ok {
		return l, nil
	}
	l := new(histogramLog)
	var err error
	if l.log, err = ycsb.NewHDRLog(&l.text, name, zero); err != nil {
		return nil, err
	}
	if h.logs == nil {
		h.logs = map[string]*histogramLog{}
	}
	h.logs[name] = l
	return l, nil
}

// write puts every log into the trial's directory.
func (h *histograms) write(w *record.TrialWriter) error {
	for name, l := range h.logs {
		err := w.Histogram(name, func(out io.Writer) error {
			_, err := out.Write(l.text.Bytes())
			return err
		})
		if err != nil {
			return fmt.Errorf("keeping histogram %s: %w", name, err)
		}
	}
	return nil
}
