package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"skerry/internal/event"
	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/record"
	"skerry/internal/recovery"
	"skerry/internal/sample"
	"skerry/internal/stats"
)

// StoppedConfidence is why a trial ended whose interval became narrow enough.
const StoppedConfidence = "confidence"

// measurement is what driving the workload gave.
type measurement struct {
	drive      load.Result
	stopped    string
	histograms histograms
	goodput    stats.BatchInterval
	bins       []recovery.Bin
	traffic    []link.Stats // of the measurement alone
	late       link.Lateness
	machine    sample.Machine // used during the measurement
	hostCPUMax float64        // cores, in the busiest second
	events     []record.Event // of the experiment
	probes     []record.Probe
}

// measure drives the workload until it is done or known well enough, while it samples the
// machine and lets the links drift.
func (r *run) measure(ctx context.Context) (measurement, error) {
	spec, err := r.spec(r.Cell, load.PhaseRun)
	if err != nil {
		return measurement{}, err
	}
	drift, err := r.driftOf()
	if err != nil {
		return measurement{}, err
	}
	events, err := r.eventsOf(ctx)
	if err != nil {
		return measurement{}, err
	}
	r.stage("starting the load")
	s, err := r.startDriver(ctx, r.Cell, spec)
	if err != nil {
		return measurement{}, err
	}
	beside, cancel := context.WithCancel(ctx)
	w := &watch{run: r, session: s, ctx: beside, drift: drift, events: events, batches: stats.NewBatchMeans()}
	m, err := w.follow()
	r.Live.Measuring(w.began, nil)
	cancel()
	if events != nil {
		r.stage("taking events back")
	}
	w.beside.Wait()
	m.probes = w.probes
	if events != nil {
		m.events = events.Events()
	}
	return m, errors.Join(err, w.failure(), ctx.Err())
}

// watch follows one drive: its own loop takes what the driver tells; beside it run the
// sampler, the drift and the events, from the begin of the measurement on.
type watch struct {
	*run
	session *load.Session
	ctx     context.Context // of what runs beside
	beside  sync.WaitGroup
	drift   *drift
	events  *event.Runner // nil without any, where none can be fired
	batches *stats.BatchMeans
	began   time.Time
	before  snapshot
	logs    histograms
	bins    []recovery.Bin // of the measurement
	probes  []record.Probe // filled beside the drive
	stopped string         // why the drive was told to stop

	mu         sync.Mutex
	hostCPUMax float64
	eventsOver bool  // the drive was told to stop for that
	failed     error // the first failure beside the drive
}

// follow returns when the driver has ended.
func (w *watch) follow() (measurement, error) {
	var m measurement
	began, clusterFailed, intervals := w.session.Began(), w.cluster.Failed(), w.session.Intervals()
	for intervals != nil {
		select {
		case w.began = <-began:
			began = nil
			w.begin()
		case <-clusterFailed:
			clusterFailed = nil
			w.fail(w.explain(fmt.Errorf("%s failed while it was measured: %w", w.Database.Name(), w.cluster.Err())))
		case i, ok := <-intervals:
			if began != nil && (!ok || i.T >= 0) {
				select { // it was sent before the first interval, if anything was measured
				case w.began = <-began:
					began = nil
					w.begin()
				default:
				}
			}
			if !ok {
				intervals = nil
				break
			}
			w.fail(w.interval(i))
		}
	}
	drive, err := w.session.Wait()
	if err != nil {
		return m, err
	}
	if drive.OK == 0 {
		return m, fmt.Errorf("no operation succeeded%s", firstError(drive))
	}
	after, err := w.snapshot(false)
	if err != nil {
		return m, err
	}
	m = measurement{drive: drive, stopped: w.stopped, histograms: w.logs, bins: w.bins, goodput: w.batches.Interval(), late: after.late,
		traffic: difference(w.before.links, after.links),
		machine: sample.Machine{Busy: after.machine.Busy - w.before.machine.Busy, Steal: after.machine.Steal - w.before.machine.Steal}}
	if m.stopped == "" {
		m.stopped = drive.Stopped
	}
	w.mu.Lock()
	m.hostCPUMax = w.hostCPUMax
	if w.eventsOver && w.stopped == "" {
		m.stopped = StoppedEvents
	}
	w.mu.Unlock()
	return m, nil
}

// begin marks the begin of the measurement: counters are read and lateness is reset, and
// the events, the sampler and the drift start.
func (w *watch) begin() {
	if w.events != nil {
		w.beside.Go(w.happen)
		w.Live.Measuring(w.began, w.fire)
	}
	if settle := w.Cell.Experiment.Stop.AfterEvents; w.events != nil && settle != nil {
		w.beside.Go(func() { w.stopAfterEvents(settle.Duration()) })
	}
	var err error
	if w.before, err = w.snapshot(true); err != nil {
		w.fail(err)
		return
	}
	w.beside.Go(func() { w.fail(w.sample(w.began)) })
	w.beside.Go(func() { w.fail(w.network(w.began)) })
	if p := w.Cell.Experiment.Workload.Probes; p != nil {
		w.beside.Go(func() { w.fail(w.probe(*p)) })
	}
	if w.drift != nil {
		w.beside.Go(func() { w.fail(w.drift.follow(w.ctx, w.run, w.began)) })
	}
}

// interval takes what the driver counted in one second.
func (w *watch) interval(i load.Interval) error {
	row := second(i)
	w.Live.Second(row)
	if err := w.Writer.Second(row); err != nil {
		return recordError{err}
	}
	if i.T >= 0 {
		if err := w.logs.add(w.began, i); err != nil {
			return err
		}
		w.bins = append(w.bins, bin(w.began, i))
		if w.events != nil && i.Length > 0 {
			w.events.Observe(i.T, float64(i.OK)/i.Length.Seconds())
		}
	}
	stop := w.Cell.Experiment.Stop
	// What drains after the end of sending is no rate, nor is a mere rest of a second.
	drains := w.stopped != "" || stop.Time > 0 && i.Start.Sub(w.began) >= time.Duration(stop.Time)
	if i.T >= 0 && !drains && i.Length >= time.Second/2 {
		w.batches.Add(float64(i.OK) / i.Length.Seconds())
	}
	elapsed := time.Duration(i.T+1) * time.Second
	if w.stopped == "" && stop.Confidence > 0 && w.quiet() && elapsed >= time.Duration(stop.MinTime) && w.batches.Reached(float64(stop.Confidence)) {
		w.stopped = StoppedConfidence
		w.session.Stop()
	}
	w.progress(i)
	return nil
}

// firstError says what the first kind of failure was.
func firstError(d load.Result) string {
	if len(d.Errors) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s: %s", d.Errors[0].Class, d.Errors[0].Example)
}

func (w *watch) progress(i load.Interval) {
	if i.T < 0 {
		w.stage(fmt.Sprintf("warming up: %.0f ops/s", rate(i)))
		return
	}
	left := ""
	if limit := time.Duration(w.Cell.Experiment.Stop.Time); limit > 0 {
		left = fmt.Sprintf(", %d s left at most", max(0, int64(limit/time.Second)-i.T-1))
	}
	w.stage(fmt.Sprintf("%.0f ops/s, p95 %.1f ms, %d failed%s", rate(i), ms(i.Latency.Response.Quantile(0.95)), i.Failed+i.Unknown, left))
}

func rate(i load.Interval) float64 {
	if i.Length <= 0 {
		return 0
	}
	return float64(i.Ended()) / i.Length.Seconds()
}

// fail ends the drive early because of an error beside it. What follows from the end of
// the drive itself is no error.
func (w *watch) fail(err error) {
	if err == nil || w.ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
		w.session.Stop()
	}
}

func (w *watch) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// second is a row of the timeline.
func second(i load.Interval) record.Second {
	s, r := i.Latency.Service, i.Latency.Response
	return record.Second{
		T: i.T, Length: i.Length.Seconds(), OK: i.OK, Failed: i.Failed, Unknown: i.Unknown, Dropped: i.Dropped,
		ServiceP50: us(s.Quantile(0.5)), ServiceP95: us(s.Quantile(0.95)), ServiceP99: us(s.Quantile(0.99)),
		ServiceP999: us(s.Quantile(0.999)), ServiceMax: us(s.Max()),
		ResponseP50: us(r.Quantile(0.5)), ResponseP99: us(r.Quantile(0.99)), ResponseP999: us(r.Quantile(0.999)),
		ClientCPU: i.Cores(), InFlight: i.InFlight,
	}
}

// bin is what recovery is measured from.
func bin(began time.Time, i load.Interval) recovery.Bin {
	return recovery.Bin{
		At: i.Start.Sub(began).Seconds(), Length: i.Length.Seconds(), OK: i.OK, Failed: i.Failed, Unknown: i.Unknown,
		Dropped: i.Dropped, P99: us(i.Latency.Response.Quantile(0.99)), Writes: i.Writes,
	}
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
