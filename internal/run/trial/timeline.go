package trial

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"skerry/internal/evidence/linkcheck"
	"skerry/internal/evidence/recovery"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
	"skerry/internal/record"
)

// histograms collects HdrHistogram logs, one line per second, operation and clock. They stay in memory
// until the trial ends: about 1 KB per line.
type histograms struct {
	logs map[string]*histogramLog
}

type histogramLog struct {
	text bytes.Buffer
	log  *ycsb.HDRLog
}

// add adds one interval of the measurement that began at zero.
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

func (h *histograms) write(w *record.TrialWriter) error {
	for name, l := range h.logs {
		err := w.Histogram(name, func(out io.Writer) error {
			_, err := out.Write(l.text.Bytes())
			return err
		})
		if err != nil {
			return fmt.Errorf("write histogram %s: %w", name, err)
		}
	}
	return nil
}

// newSecond returns a row of the timeline.
func newSecond(i load.Interval) record.Second {
	s, r := i.Latency.Service, i.Latency.Response
	return record.Second{
		T: i.T, Length: i.Length.Seconds(), OK: i.OK, Failed: i.Failed, Unknown: i.Unknown, Dropped: i.Dropped,
		ServiceP50: us(s.Quantile(0.5)), ServiceP95: us(s.Quantile(0.95)), ServiceP99: us(s.Quantile(0.99)),
		ServiceP999: us(s.Quantile(0.999)), ServiceMax: us(s.Max()),
		ResponseP50: us(r.Quantile(0.5)), ResponseP95: us(r.Quantile(0.95)), ResponseP99: us(r.Quantile(0.99)), ResponseP999: us(
			r.Quantile(0.999),
		),
		ClientCPU: i.Cores(), InFlight: i.InFlight,
	}
}

// operationSeconds returns the live figures of each kind of operation.
func operationSeconds(i load.Interval) (rows []record.OperationSecond) {
	for _, name := range slices.Sorted(maps.Keys(i.Operations)) {
		o := i.Operations[name]
		r := o.Latency.Response
		rows = append(
			rows,
			record.OperationSecond{
				T: i.T, Operation: name, OK: o.OK, P50: us(r.Quantile(0.5)), P95: us(r.Quantile(0.95)),
				P99: us(r.Quantile(0.99)),
			},
		)
	}
	return rows
}

// poolSeconds returns the rows of pools.parquet, none for a single workload.
func poolSeconds(i load.Interval) (rows []record.PoolSecond) {
	for _, p := range i.Pools {
		if p.Name != "" {
			rows = append(rows, record.PoolSecond{Pool: p.Name, Second: newSecond(p.Interval)})
		}
	}
	return rows
}

// errorSeconds returns the rows of errors.parquet.
func errorSeconds(l *lab.Lab, i load.Interval) (rows []record.ErrorSecond) {
	for _, e := range i.Errors {
		rows = append(
			rows,
			record.ErrorSecond{
				T: i.T, Operation: e.Operation, Outcome: e.Outcome.String(), Class: e.Class,
				Node: nodeByAddress(l, e.Node), Count: e.Count,
			},
		)
	}
	return rows
}

// newBin returns the input of the recovery analysis.
func newBin(began time.Time, i load.Interval) recovery.Bin {
	return recovery.Bin{
		At: i.Start.Sub(began).Seconds(), Length: i.Length.Seconds(), OK: i.OK, Failed: i.Failed, Unknown: i.Unknown,
		Dropped: i.Dropped, P99: us(i.Latency.Response.Quantile(0.99)), Writes: i.Writes,
	}
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// linkAccount accumulates what the links did to packets, per second of the measurement. It is safe for
// concurrent use.
type linkAccount struct {
	mu    sync.Mutex
	began time.Time
	read  time.Time // of the last reading; zero before start and after finish
	last  map[string]link.Stats
	check linkcheck.Checker
}

// start makes a reading the start of the measurement.
func (l *linkAccount) start(began, at time.Time, stats []link.Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.read, l.last = began, at, byID(stats)
}

// addReading returns the rows of the second that the reading ends, without idle directions. It skips a
// reading less than half a second after the previous one.
func (l *linkAccount) addReading(at time.Time, stats map[string]link.Stats, links []lab.Link) []record.DirectionSecond {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read.IsZero() || at.Sub(l.read) < time.Second/2 {
		return nil
	}
	// Seconds are those of the sampler: a reading ends the previous second.
	return l.addSecond(int64(at.Sub(l.began)/time.Second)-1, at, stats, links)
}

// finish adds what the links counted after the last whole second.
func (l *linkAccount) finish(at time.Time, stats map[string]link.Stats, links []lab.Link) (rows []record.DirectionSecond) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.read.IsZero() {
		rows = l.addSecond(int64(l.read.Sub(l.began)/time.Second), at, stats, links)
	}
	l.read = time.Time{}
	return rows
}

// result returns the account of the measurement, including the observations of its events.
func (l *linkAccount) result(events []record.Event) record.LinkAccount {
	for _, e := range events {
		for _, s := range []*record.Step{e.Apply, e.Revert} {
			if s != nil {
				l.addChange(s.Observed)
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.check.Result()
}

func (l *linkAccount) addSecond(t int64, at time.Time, stats map[string]link.Stats, links []lab.Link) (rows []record.DirectionSecond) {
	for _, k := range links {
		now, was := stats[k.ID], l.last[k.ID]
		for _, d := range []struct {
			way         linkcheck.Direction
			set         link.Quality
			before, now link.Counters
		}{
			{linkcheck.Direction{Link: k.ID, From: k.A, To: k.B}, k.AB, was.AB, now.AB},
			{linkcheck.Direction{Link: k.ID, From: k.B, To: k.A}, k.BA, was.BA, now.BA},
		} {
			s := linkcheck.Second{Direction: d.way, T: t, Length: at.Sub(l.read), Set: d.set, Counters: linkcheck.CountersBetween(d.before, d.now)}
			l.check.Add(s)
			if !s.Idle() {
				rows = append(rows, s.Row())
			}
		}
	}
	l.read, l.last = at, stats
	return rows
}

// addChange adds the observation made after a change of links.
func (l *linkAccount) addChange(o *record.Observed) {
	if o == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.check.AddChange(*o)
}
