package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"skerry/internal/database"
	"skerry/internal/evidence/bottleneck"
	"skerry/internal/evidence/recovery"
	"skerry/internal/evidence/stats"
	"skerry/internal/evidence/verdict"
	"skerry/internal/experiment"
	"skerry/internal/kernel/realtime"
	"skerry/internal/link"
	"skerry/internal/load"
	"skerry/internal/record"
	"skerry/internal/topology/flavor"
)

// StoppedConfidence is the stop reason of a trial whose interval became narrow enough.
const StoppedConfidence = "confidence"

// measuring holds the inputs of a measurement.
type measuring struct {
	cell     experiment.Cell
	database database.Database
	env      *environment
	driver   driver
	governor *flavor.Governor // nil if no flavor varies
	report   reporter
	priority *realtime.Process
}

func newMeasuring(c Config, report reporter, g *environment, d driver, governor *flavor.Governor) measuring {
	return measuring{cell: c.Cell, database: c.Database, env: g, driver: d, governor: governor, report: report, priority: c.Urgent}
}

// measurement is the result of driving the workload.
type measurement struct {
	started      bool // the driver reported the start
	drive        load.Result
	stopped      string
	histograms   histograms
	goodput      stats.BatchInterval
	goodputs     map[string]stats.BatchInterval // by pool
	bins         []recovery.Bin
	traffic      []link.Stats // of the measurement alone
	machines     []machineSpan
	sampled      int      // seconds
	use          *nodeUse // of nodes, over the sampled seconds
	hostCPUMax   float64  // cores, in the busiest second
	stolen       record.Stolen
	otherUse     verdict.Piece[verdict.Use]
	otherLabs    int // of the run, at the same time
	waits        []bottleneck.Second
	unknownWaits []string           // waits of servers that cannot be counted here
	events       []record.Event     // of the experiment
	account      record.LinkAccount // what links did to packets
	probes       []record.Probe
	real         map[string]record.LinkSeen // by real link
	serverTrips  []float64                  // s, sorted medians by server; of a cluster that Skerry did not start
}

// measure drives the workload until it ends or its interval is narrow enough. Concurrently it samples the
// machines, runs the events and lets the links drift.
func (m measuring) measure(ctx context.Context) (measurement, error) {
	drift, err := newDrift(m.cell.Experiment, m.env.lab)
	if err != nil {
		return measurement{}, err
	}
	events, err := m.newOccurrences(ctx)
	if err != nil {
		return measurement{}, err
	}
	m.report.setStage("starting the load")
	s, err := m.driver.startAll(ctx, m.cell)
	if err != nil {
		return measurement{}, err
	}
	beside, cancel := context.WithCancel(ctx)
	w := &watch{
		measuring: m, session: s, ctx: beside, drift: drift, events: events, batches: stats.NewBatchMeans(),
		pools: newPools(m.cell.Experiment), waits: newWaitSeconds(m.cell.Experiment),
	}
	if c := m.env.externalCluster(); c != nil {
		w.serversHere = serversHere(c.Servers())
	}
	got, err := w.followDrive()
	m.report.live.SetMeasuring(w.began, nil)
	cancel()
	if events != nil {
		m.report.setStage("reverting events")
	}
	w.background.Wait()
	got.probes = w.probes
	if w.real != nil {
		got.real = w.real.summarise()
		if m.env.externalCluster() != nil {
			got.serverTrips = medianTrips(got.real)
		}
	}
	if events != nil {
		got.events = events.Events()
	}
	got.account = w.account.result(got.events)
	return got, errors.Join(err, w.firstFailure(), ctx.Err())
}

// watch follows one drive. followDrive processes the driver's intervals; the sampler, drift and events run
// as background goroutines from the start of the measurement.
type watch struct {
	measuring
	session    *load.Pools
	ctx        context.Context // of background goroutines
	background sync.WaitGroup
	drift      *drift
	events     *occurrences // nil if there are none and users cannot fire any
	batches    *stats.BatchMeans
	began      time.Time
	before     counterSnapshot
	logs       histograms
	bins       []recovery.Bin // of the measurement
	probes     []record.Probe // guarded by mu until the drive ends
	stopped    string         // why the drive was stopped

	use     nodeUse
	account linkAccount
	waits   *waitSeconds
	pools   *pools
	real    *realLinks // nil without real links
	// serversHere says that servers which Skerry did not start run on this machine: their CPU time is not told from that
	// of other programs.
	serversHere bool

	mu         sync.Mutex
	hostCPUMax float64
	sampled    int
	eventsOver bool  // the drive was stopped because of it
	failed     error // first failure in the background
}

// followDrive returns when the driver has ended.
func (w *watch) followDrive() (measurement, error) {
	var m measurement
	began, clusterFailed, intervals := w.session.Began(), w.env.cluster.Failed(), w.session.Intervals()
	for intervals != nil {
		select {
		case w.began = <-began:
			began = nil
			w.startMeasurement()
		case <-clusterFailed:
			clusterFailed = nil
			w.fail(w.env.explain(w.ctx, fmt.Errorf("%s failed during the measurement: %w", w.env.database, w.env.cluster.Err())))
		case i, ok := <-intervals:
			if began != nil && (!ok || i.T >= 0) {
				select { // sent before the first interval if a measurement began
				case w.began = <-began:
					began = nil
					w.startMeasurement()
				default:
				}
			}
			if !ok {
				intervals = nil
				break
			}
			w.fail(w.addInterval(i))
		}
	}
	drive, err := w.session.Wait()
	if err != nil {
		return m, err
	}
	for _, p := range drive.Pools {
		if p.OK == 0 {
			return m, fmt.Errorf("no operation%s succeeded%s", ofPool(p.Name), firstError(p.Result))
		}
	}
	after, err := w.readCounters(false)
	if err != nil {
		return m, err
	}
	if err := w.report.writer.DirectionSeconds(w.account.finish(time.Now(), byID(after.links), w.env.lab.Links())...); err != nil {
		return m, recordError{err}
	}
	m = measurement{started: began == nil, drive: drive, stopped: w.stopped, histograms: w.logs, bins: w.bins, goodput: w.batches.Interval(),
		traffic: subtractStats(w.before.links, after.links)}
	if m.started {
		m.machines, m.otherUse = machineSpans(w.before, after), otherUse(w.before.cpu, after.cpu)
		if w.serversHere {
			m.otherUse = verdict.Unknown[verdict.Use]("servers of the cluster run on this machine")
		}
		m.otherLabs = len(w.before.cpu.labs) - 1
	}
	if m.stopped == "" {
		m.stopped = drive.Stopped
	}
	m.waits = w.waits.all()
	if m.unknownWaits, err = unknownWaits(w.env.lab.Hosts(), w.cell.Experiment.DataNodes()); err != nil {
		return m, err
	}
	m.use, m.stolen, m.goodputs = &w.use, w.pools.worstStolen(), w.pools.intervals()
	m.stolen.OwnTrials = m.onlyOwnTrials()
	w.mu.Lock()
	m.hostCPUMax, m.sampled = w.hostCPUMax, w.sampled
	if w.eventsOver && w.stopped == "" {
		m.stopped = StoppedEvents
	}
	w.mu.Unlock()
	return m, nil
}

// startMeasurement reads the counters, resets lateness, and starts the background goroutines.
func (w *watch) startMeasurement() {
	if w.events != nil {
		w.background.Go(w.runEvents)
		w.report.live.SetMeasuring(w.began, w.events.fire)
	}
	if settle := w.cell.Experiment.Stop.AfterEvents; w.events != nil && settle != nil {
		w.background.Go(func() { w.stopAfterEvents(settle.Duration()) })
	}
	var err error
	if w.before, err = w.readCounters(true); err != nil {
		w.fail(err)
		return
	}
	w.account.start(w.began, time.Now(), w.before.links)
	w.background.Go(func() { w.fail(w.runSampler(w.began)) })
	w.background.Go(func() { w.fail(w.measureNetwork(w.began)) })
	if w.real = w.newRealLinks(); w.real != nil {
		w.background.Go(func() { w.fail(w.measureReal(w.began)) })
	}
	for _, p := range w.cell.Experiment.Pools() {
		if p.Workload.Probes != nil {
			w.background.Go(func() { w.fail(w.runProbes(p)) })
		}
	}
	if w.drift != nil {
		w.background.Go(func() { w.fail(w.drift.follow(w.ctx, w.env.testbed.Links, w.report, w.began, w.account.addChange)) })
	}
}

// newRealLinks returns the collector of the paths that nothing emulates, nil if there are none.
func (w *watch) newRealLinks() *realLinks {
	if c := w.env.externalCluster(); c != nil {
		return newServerLinks(w.cell.Experiment.ClientNode(), c)
	}
	return newLabLinks(w.env.lab)
}

// addInterval processes what the driver counted in one second.
func (w *watch) addInterval(i load.Interval) error {
	row := newSecond(i)
	row.Stolen = w.pools.addInterval(i)
	each, errors := poolSeconds(i), errorSeconds(w.env.lab, i)
	w.report.live.AddOperations(operationSeconds(i)) // must precede their second
	w.report.live.AddSecond(row)
	w.report.live.AddPools(each)
	w.report.live.AddErrors(errors)
	if err := w.report.writeSecond(row, each, errors); err != nil {
		return recordError{err}
	}
	if i.T >= 0 {
		if err := w.logs.add(w.began, i); err != nil {
			return err
		}
		w.bins = append(w.bins, newBin(w.began, i))
		w.waits.addInterval(i)
		if w.events != nil && i.Length > 0 {
			w.events.observeSecond(i)
		}
	}
	stop := w.cell.Experiment.Stop
	// Operations that finish after the end of sending, and a partial last second, do not count as a rate.
	drains := w.stopped != "" || stop.Time > 0 && i.Start.Sub(w.began) >= time.Duration(stop.Time)
	if i.T >= 0 && !drains && i.Length >= time.Second/2 {
		w.batches.Add(float64(i.OK) / i.Length.Seconds())
		w.pools.add(i)
	}
	elapsed := time.Duration(i.T+1) * time.Second
	if w.stopped == "" && stop.Confidence > 0 && w.eventsDone() && elapsed >= time.Duration(stop.MinTime) &&
		w.batches.Reached(float64(stop.Confidence)) && w.pools.reached(float64(stop.Confidence)) {
		w.stopped = StoppedConfidence
		w.session.Stop()
	}
	w.reportProgress(i)
	return nil
}

func ofPool(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// firstError describes the first kind of failed operations.
func firstError(d load.Result) string {
	if len(d.Errors) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s: %s", d.Errors[0].Class, d.Errors[0].Example)
}

func (w *watch) reportProgress(i load.Interval) {
	if i.T < 0 {
		w.report.setStagef("warming up: %.0f ops/s", rate(i))
		return
	}
	left, stop := "", w.cell.Experiment.Stop
	if stop.Operations >= experiment.Endless {
		left = ", until Ctrl-C"
	}
	if limit := time.Duration(stop.Time); limit > 0 {
		left = fmt.Sprintf(", %d s left at most", max(0, int64(limit/time.Second)-i.T-1))
	}
	w.report.setStagef("%.0f ops/s, p95 %.1f ms, %d failed%s", rate(i), ms(i.Latency.Response.Quantile(0.95)), i.Failed+i.Unknown, left)
}

func rate(i load.Interval) float64 {
	if i.Length <= 0 {
		return 0
	}
	return float64(i.Ended()) / i.Length.Seconds()
}

// fail stops the drive because of an error in the background. Errors after the end of the drive follow from
// it and are ignored.
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

func (w *watch) firstFailure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}
