// Package metric names the figures of a trial ("goodput", "read.p95", "lost_writes", "events.leave.recover"), and
// checks assertions on them.
package metric

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/record"
)

// Unit is the unit of a metric.
type Unit string

// Units. Time is in seconds; Share is from 0 to 1.
const (
	Number Unit = ""
	Rate   Unit = "/s"
	Time   Unit = "s"
	Share  Unit = "%"
	Bytes  Unit = "B"
	Cores  Unit = "cores"
)

// Value is one figure of a trial.
type Value struct {
	Name string
	Unit Unit
	V    float64
	// LowerBound is true if the figure is at least V: a recovery that was not observed.
	LowerBound bool
}

// Values returns a trial's figures in a fixed order. A name occurs once for each event that has it.
func Values(t record.Trial) []Value {
	var out valueList
	out.add("goodput", Rate, t.Goodput)
	out.add("throughput", Rate, t.Throughput)
	out.addAvailability(t.Outcomes)
	out.add("ok", Number, float64(t.Outcomes.OK))
	out.add("failed", Number, float64(t.Outcomes.Failed))
	out.add("unknown", Number, float64(t.Outcomes.Unknown))
	out.add("dropped", Number, float64(t.Outcomes.Dropped))
	out.add("retries", Number, float64(t.Retries))
	for _, name := range slices.Sorted(maps.Keys(t.Operations)) {
		out.addOperation(operationName(name), t.Operations[name])
	}
	for _, p := range t.Pools {
		out.addPool(p)
	}
	out.addSlowest(t.Operations)
	if t.Traffic != nil {
		out.add("traffic.total", Bytes, float64(t.Traffic.TotalBytes))
		out.add("traffic.data", Bytes, float64(t.Traffic.DataBytes))
	}
	if a := t.Audit; a != nil {
		out.add("lost_writes", Number, float64(a.Lost))
		out.add("stale_copies", Number, float64(a.Stale))
		out.add("unexpected_values", Number, float64(a.Unexpected))
		out.add("unread_keys", Number, float64(a.Unread))
	}
	for _, h := range t.Events {
		out.addEvent("events."+h.Name+".", h)
		if h.Kind != h.Name {
			out.addEvent("events."+h.Kind+".", h)
		}
	}
	out.add("host.cpu", Cores, t.Fidelity.HostCPU)
	if others := t.Fidelity.OthersCPU; others != nil {
		out.add("host.others", Cores, *others)
	}
	out.add("client.cpu", Cores, t.Fidelity.ClientCPU)
	if t.Traffic != nil {
		out.add("cost.cpu", Cores, t.Fidelity.OwnCPU)
		out.add("cost.memory", Bytes, float64(t.Fidelity.OwnMemory))
		if t.Outcomes.OK > 0 {
			out.add("cost.traffic", Bytes, float64(t.Traffic.DataBytes)/float64(t.Outcomes.OK))
		}
	}
	return out
}

func (vs *valueList) addSlowest(operations map[string]record.OperationSummary) {
	worst := map[string]float64{}
	for _, o := range operations {
		if o.Count == 0 {
			continue
		}
		for name, v := range latencyValues(o.Latency()) {
			worst[name] = max(worst[name], v)
		}
	}
	for _, name := range latencies {
		if v, ok := worst[name]; ok {
			vs.add(name, Time, v/1e6)
		}
	}
}

func latencyValues(l record.Latency) map[string]float64 {
	return map[string]float64{"mean": l.Mean, "p50": l.P50, "p95": l.P95, "p99": l.P99, "p999": l.P999, "max": l.Max}
}

type valueList []Value

func (vs *valueList) add(name string, u Unit, v float64) {
	*vs = append(*vs, Value{Name: name, Unit: u, V: v})
}

func (vs *valueList) addAvailability(o record.Outcomes) {
	if all := o.OK + o.Failed + o.Unknown + o.Dropped; all > 0 {
		vs.add("availability", Share, float64(o.OK)/float64(all))
	}
}

func (vs *valueList) addOperation(name string, o record.OperationSummary) {
	vs.add(name+".count", Number, float64(o.Count))
	vs.add(name+".failed", Number, float64(o.Failed))
	if o.Count > 0 {
		vs.addLatencies(name, o)
	}
}

func (vs *valueList) addPool(p record.Pool) {
	vs.add(p.Name+".goodput", Rate, p.Goodput)
	vs.add(p.Name+".throughput", Rate, p.Throughput)
	var of valueList
	of.addAvailability(p.Outcomes)
	for _, v := range of {
		vs.add(p.Name+"."+v.Name, v.Unit, v.V)
	}
	vs.add(p.Name+".ok", Number, float64(p.Outcomes.OK))
	vs.add(p.Name+".failed", Number, float64(p.Outcomes.Failed))
	vs.add(p.Name+".unknown", Number, float64(p.Outcomes.Unknown))
	vs.add(p.Name+".dropped", Number, float64(p.Outcomes.Dropped))
	vs.add(p.Name+".client.cpu", Cores, p.ClientCPU)
	if p.All.Count > 0 {
		vs.addLatencies(p.Name, p.All)
	}
}

func (vs *valueList) addLatencies(name string, o record.OperationSummary) {
	for _, clock := range []struct {
		prefix string
		l      record.Latency
	}{{name + ".", o.Response}, {name + ".service.", o.Service}} {
		figures := latencyValues(clock.l)
		for _, l := range latencies {
			vs.add(clock.prefix+l, Time, figures[l]/1e6)
		}
	}
}

var latencies = []string{"mean", "p50", "p95", "p99", "p999", "max"}

func (vs *valueList) addEvent(prefix string, h record.EventImpact) {
	r := h.Recovery
	optional := func(name string, v *float64) {
		if v != nil {
			vs.add(prefix+name, Time, *v)
		}
	}
	optional("accepted", h.AcceptedS)
	optional("complete", h.CompleteS)
	if h.Carried != nil {
		vs.add(prefix+"carried", Bytes, h.Carried.Rate)
		vs.add(prefix+"share", Share, h.Carried.Share)
	}
	vs.add(prefix+"availability", Share, r.Availability)
	vs.add(prefix+"unresponsive", Time, r.UnresponsiveS)
	vs.add(prefix+"unresponsive_periods", Number, float64(r.UnresponsivePeriods))
	vs.add(prefix+"longest_unresponsive", Time, r.LongestUnresponsiveS)
	if r.TakeoverS != nil {
		vs.add(prefix+"takeover", Time, *r.TakeoverS)
	} else {
		*vs = append(*vs, Value{Name: prefix + "takeover", Unit: Time, V: r.WatchedS, LowerBound: true})
	}
	if r.BaselineOps <= 0 {
		return
	}
	*vs = append(*vs, Value{Name: prefix + "recover", Unit: Time, V: r.RecoverS, LowerBound: r.Censored})
	vs.add(prefix+"availability_time", Share, r.AvailabilityTime)
	vs.add(prefix+"dip", Share, r.DipDepth)
	vs.add(prefix+"dip_ops", Number, r.DipOps)
	vs.add(prefix+"overshoot_ops", Number, r.OvershootOps)
	vs.add(prefix+"sla_violation", Time, r.SLAViolationS)
}

// operationName converts YCSB's name of an operation: READ-MODIFY-WRITE becomes read_modify_write.
func operationName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

func (v Value) upperBound() float64 {
	if v.LowerBound {
		return math.Inf(1)
	}
	return v.V
}

// Format formats a figure with its unit: "250 ms", "99.95 %", "1234 ops/s".
func (u Unit) Format(v float64) string {
	switch u {
	case Time:
		switch a := math.Abs(v); {
		case v == 0:
			return "0 s"
		case a < 1e-3:
			return formatDigits(v*1e6) + " us"
		case a < 1:
			return formatDigits(v*1e3) + " ms"
		}
		return formatDigits(v) + " s"
	case Share:
		return strconv.FormatFloat(v*100, 'g', 6, 64) + " %"
	case Bytes:
		for _, s := range []struct {
			size float64
			name string
		}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
			if math.Abs(v) >= s.size {
				return formatDigits(v/s.size) + " " + s.name
			}
		}
		return formatDigits(v) + " B"
	case Rate:
		return formatDigits(v) + " ops/s"
	case Cores:
		return formatDigits(v) + " cores"
	}
	return formatDigits(v)
}

func formatDigits(v float64) string {
	if math.Abs(v) >= 1000 || v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
