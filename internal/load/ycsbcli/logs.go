package ycsbcli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// histogramLogs are HdrHistogram logs, one file for each series.
type histogramLogs struct {
	// paths of the service and the response times of an operation; "" for none.
	paths func(operation string) (service, response string)
	open  map[string]*logFile
}

type logFile struct {
	io.Closer
	*ycsb.HDRLog
}

// newHistogramLogs logs to OPERATION.service.hdr and OPERATION.response.hdr in the folder that
// was asked for, or where the properties say, by YCSB's names.
func newHistogramLogs(o Options, s ycsb.Settings) (*histogramLogs, error) {
	l := &histogramLogs{open: map[string]*logFile{}}
	switch {
	case o.HDR != "":
		if err := os.MkdirAll(o.HDR, 0o755); err != nil {
			return nil, fmt.Errorf("making the folder for histogram logs: %w", err)
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
			return fmt.Errorf("making a histogram log: %w", err)
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
