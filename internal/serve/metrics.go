package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"skerry/internal/record"
	"skerry/internal/run/live"
)

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(collector{r.Context(), s.runs.dir}); err != nil {
		writeError(w, err)
		return
	}
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// series describes a metric. All metrics also have the labels run and trial.
type series struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
}

// All metrics. docs/dashboard.md lists them.
var (
	runInfo = series{"run_info", "A run in progress; always 1.", prometheus.GaugeValue,
		[]string{"experiment", "version", "database", "parameters"}}
	trialsPlanned = series{"trials_planned", "Trials of the run's plan.", prometheus.GaugeValue, nil}
	trialsEnded   = series{"trials_ended", "Trials that have ended since the run was started or resumed.", prometheus.GaugeValue,
		[]string{"state"}}
	measuring  = series{"trial_measuring", "1 while the trial measures, 0 before and after.", prometheus.GaugeValue, nil}
	elapsed    = series{"trial_elapsed_seconds", "Since the measurement began.", prometheus.GaugeValue, nil}
	operations = series{"operations_total", "Operations of the measurement.", prometheus.CounterValue, []string{"outcome"}}
	rate       = series{"operations_per_second", "Operations of the last second.", prometheus.GaugeValue, []string{"outcome"}}
	latency    = series{"latency_seconds", "Latency of the operations of the last second that ended ok.", prometheus.GaugeValue,
		[]string{"clock", "quantile"}}
	inFlight      = series{"operations_in_flight", "Operations in flight at the end of the last second.", prometheus.GaugeValue, nil}
	driverCPU     = series{"driver_cpu_cores", "CPU that the load driver used in the last second.", prometheus.GaugeValue, nil}
	nodeCPU       = series{"node_cpu_cores", "CPU that a node used in the last second.", prometheus.GaugeValue, []string{"node", "site"}}
	nodeThrottled = series{"node_throttled_cores", "CPU that a node's quota held back in the last second.", prometheus.GaugeValue,
		[]string{"node", "site"}}
	nodeMemory  = series{"node_memory_bytes", "Resident memory of a node.", prometheus.GaugeValue, []string{"node", "site"}}
	nodeReceive = series{"node_receive_bytes_per_second", "Received over a node's links in the last second.", prometheus.GaugeValue,
		[]string{"node", "site"}}
	nodeTransmit = series{"node_transmit_bytes_per_second", "Sent over a node's links in the last second.", prometheus.GaugeValue,
		[]string{"node", "site"}}
	nodeRead = series{"node_disk_read_bytes_per_second", "Read from a node's disk in the last second.", prometheus.GaugeValue,
		[]string{"node", "site"}}
	nodeWritten = series{"node_disk_written_bytes_per_second", "Written to a node's disk in the last second.", prometheus.GaugeValue,
		[]string{"node", "site"}}
	linkLatency = series{"link_latency_seconds", "One-way latency that a direction of a link is set to.", prometheus.GaugeValue,
		[]string{"link", "from", "to"}}
	linkLoss = series{"link_loss_ratio", "Share of packets that a direction of a link loses.", prometheus.GaugeValue,
		[]string{"link", "from", "to"}}
	linkUp = series{"link_up", "1 where a direction of a link passes packets, 0 where it is cut.", prometheus.GaugeValue,
		[]string{"link", "from", "to"}}
	networkRTT = series{"network_rtt_seconds", "Round trips between nodes where an overlay routes: mean and worst.",
		prometheus.GaugeValue, []string{"of"}}
	unreachable = series{"network_unreachable_pairs", "Pairs of nodes without an answer where an overlay routes.",
		prometheus.GaugeValue, nil}
	events = series{"events", "Events of the trial by their state.", prometheus.GaugeValue, []string{"kind", "source", "state"}}
)

var allSeries = []series{runInfo, trialsPlanned, trialsEnded, measuring, elapsed, operations, rate, latency, inFlight, driverCPU,
	nodeCPU, nodeThrottled,
	nodeMemory, nodeReceive, nodeTransmit, nodeRead, nodeWritten, linkLatency, linkLoss, linkUp, networkRTT, unreachable, events}

func (s series) fullName() string { return "skerry_" + s.name }

func (s series) desc() *prometheus.Desc {
	return prometheus.NewDesc(s.fullName(), s.help, append([]string{"run", "trial"}, s.labels...), nil)
}

const stateTimeout = 2 * time.Second

type collector struct {
	ctx context.Context
	dir string
}

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, s := range allSeries {
		to <- s.desc()
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(c.ctx, stateTimeout)
	defer cancel()
	found, err := os.ReadDir(c.dir)
	if err != nil {
		return // no runs yet
	}
	for _, f := range found {
		if !f.IsDir() {
			continue
		}
		state, err := live.ReadState(ctx, filepath.Join(c.dir, f.Name()))
		if errors.Is(err, live.ErrNotLive) {
			continue
		}
		if err != nil {
			to <- prometheus.NewInvalidMetric(runInfo.desc(), err)
			continue
		}
		g := gauge{to: to, state: state}
		g.emitAll()
	}
}

type gauge struct {
	to    chan<- prometheus.Metric
	state live.State
}

func (g gauge) emit(s series, v float64, labels ...string) {
	trial := ""
	if t := g.state.Trial; t != nil {
		trial = strconv.Itoa(t.ID)
	}
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "�")
	}
	m, err := prometheus.NewConstMetric(s.desc(), s.kind, v, append([]string{g.state.Run.Name, trial}, labels...)...)
	if err != nil {
		m = prometheus.NewInvalidMetric(s.desc(), err)
	}
	g.to <- m
}

func (g gauge) emitAll() {
	st := g.state
	database, parameters := "", ""
	if t := st.Trial; t != nil {
		database, parameters = t.Database, formatParameters(t.Parameters)
	}
	g.emit(runInfo, 1, st.Run.Experiment, st.Run.Version, database, parameters)
	g.emit(trialsPlanned, float64(st.Run.Planned))
	ended := map[string]float64{record.TrialOK: 0, record.TrialFailed: 0}
	for _, r := range st.Results {
		ended[r.State]++
	}
	for state, n := range ended {
		g.emit(trialsEnded, n, state)
	}
	if st.Trial == nil {
		return
	}
	g.emit(measuring, boolToFloat(st.Trial.Measuring))
	if b := st.Trial.Began; b != nil && st.Trial.Measuring {
		g.emit(elapsed, time.Since(*b).Seconds())
	}
	g.emitLoad()
	g.emitNodes()
	g.emitLinks()
	g.emitEvents()
}

func (g gauge) emitLoad() {
	t := g.state.Totals
	for outcome, n := range map[string]int64{"ok": t.OK, "failed": t.Failed, "unknown": t.Unknown, "dropped": t.Dropped} {
		g.emit(operations, float64(n), outcome)
	}
	if len(g.state.Seconds) == 0 {
		return
	}
	x := g.state.Seconds[len(g.state.Seconds)-1]
	for outcome, n := range map[string]int64{"ok": x.OK, "failed": x.Failed, "unknown": x.Unknown, "dropped": x.Dropped} {
		g.emit(rate, float64(n)/max(x.Length, 1e-3), outcome)
	}
	for quantile, us := range map[string]float64{"0.5": x.ServiceP50, "0.95": x.ServiceP95, "0.99": x.ServiceP99, "0.999": x.ServiceP999} {
		g.emit(latency, us/1e6, "service", quantile)
	}
	for quantile, us := range map[string]float64{"0.5": x.ResponseP50, "0.95": x.ResponseP95, "0.99": x.ResponseP99, "0.999": x.ResponseP999} {
		g.emit(latency, us/1e6, "response", quantile)
	}
	g.emit(inFlight, float64(x.InFlight))
	g.emit(driverCPU, x.ClientCPU)
}

func (g gauge) emitNodes() {
	rows := g.state.Nodes
	if len(rows) == 0 || g.state.Cloud == nil {
		return
	}
	site := map[string]string{}
	for _, n := range g.state.Cloud.Nodes {
		site[n.Name] = n.Site
	}
	emitted := map[string]bool{} // a delayed sampler records two rows of one second
	for i := len(rows) - 1; i >= 0 && rows[i].T == rows[len(rows)-1].T && !emitted[rows[i].Node]; i-- {
		x := rows[i]
		emitted[x.Node] = true
		where := func() []string { return []string{x.Node, site[x.Node]} }
		g.emit(nodeCPU, x.CPU, where()...)
		if strings.HasPrefix(x.Node, "@") { // a helper process or the host: only its CPU is known
			continue
		}
		g.emit(nodeThrottled, x.Throttled, where()...)
		g.emit(nodeMemory, float64(x.Memory), where()...)
		g.emit(nodeReceive, float64(x.RxBytes), where()...)
		g.emit(nodeTransmit, float64(x.TxBytes), where()...)
		g.emit(nodeRead, float64(x.ReadBytes), where()...)
		g.emit(nodeWritten, float64(x.WroteBytes), where()...)
	}
}

func (g gauge) emitLinks() {
	if n := g.state.Network; n != nil {
		g.emit(networkRTT, n.Mean/1e3, "mean")
		g.emit(networkRTT, n.Worst/1e3, "worst")
		g.emit(unreachable, float64(n.Unreachable))
	}
	if g.state.Cloud == nil {
		return
	}
	for _, l := range g.state.Cloud.Links {
		way := func(w live.Way, from, to string) {
			g.emit(linkLatency, w.LatencyMS/1e3, l.ID, from, to)
			g.emit(linkLoss, w.Loss, l.ID, from, to)
			g.emit(linkUp, boolToFloat(!w.Down && !l.CarrierDown), l.ID, from, to)
		}
		way(l.AB, l.A, l.B)
		way(l.BA, l.B, l.A)
	}
}

func (g gauge) emitEvents() {
	count := map[[3]string]float64{}
	for _, e := range g.state.Events {
		if e.ID == 0 {
			continue
		}
		source := e.Source
		if source == "" {
			source = "experiment"
		}
		count[[3]string{e.Kind, source, e.State}]++
	}
	for k, n := range count {
		g.emit(events, n, k[0], k[1], k[2])
	}
}

func boolToFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func formatParameters(p map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, p[name]))
	}
	return strings.Join(parts, " ")
}
