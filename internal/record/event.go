package record

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"
)

// Event is one line of events.jsonl. An event of the experiment has an ID and is written again at every change of its
// state; only the last line of an ID counts, and Dir.Events returns only that.
type Event struct {
	// T is the time in seconds since the measurement began at which the event began, or was due if it never began.
	T       float64 `json:"t"`
	Kind    string  `json:"kind"` // "scale", "drift", or that of an experiment's event, by its key there
	Message string  `json:"message"`

	// ID numbers the events of the experiment from 1; 0 marks any other entry.
	ID int `json:"id,omitempty"`
	// Entry is the index in the experiment's list of events, from 0; Turn counts the occurrences of that entry, from 1;
	// Name is the entry's name, or "". Entry is -1 if Source fired the event.
	Entry int    `json:"entry,omitempty"`
	Turn  int    `json:"turn,omitempty"`
	Name  string `json:"name,omitempty"`
	// Source is SourceUI for an event fired from the dashboard, "" for an event of the experiment.
	Source string `json:"source,omitempty"`
	// Effect is what the event does to its targets; nil for entries that are not events of an experiment.
	Effect *Effect `json:"effect,omitempty"`
	// Targets are names of nodes or links.
	Targets []string `json:"targets,omitempty"`
	// Carried is what the links among its targets carried just before; nil if unknown.
	Carried *Carried `json:"carried,omitempty"`
	// Spec is the entry as written in the experiment.
	Spec json.RawMessage `json:"spec,omitempty"`
	// State is one of the EventX constants.
	State string `json:"state,omitempty"`
	// Apply is the change; Revert is its reversal, nil before it is due and for events that are never reverted (a
	// member that left).
	Apply  *Step `json:"apply,omitempty"`
	Revert *Step `json:"revert,omitempty"`
	// Observed is what the emulator observed after a step of the drift; nil if it was not checked.
	Observed *Observed `json:"observed,omitempty"`
	// Error is why the event failed or was skipped.
	Error string `json:"error,omitempty"`
}

// PerMember returns an event for each member of changes that replace members one after the other, and the other events
// as they are.
func PerMember(events []Event) (each []Event) {
	for _, e := range events {
		if e.Apply == nil || len(e.Apply.Members) == 0 {
			each = append(each, e)
			continue
		}
		for _, m := range e.Apply.Members {
			one := e
			one.Targets = []string{m.Node}
			one.Apply = &Step{Due: e.Apply.Due, Began: &m.Began, Accepted: m.Accepted, Completed: m.Completed, Members: []MemberStep{m}}
			each = append(each, one)
		}
	}
	return each
}

// Carried is the traffic of links in the seconds before an event.
type Carried struct {
	// Rate is in bytes per second, both directions together; Share is the part of all links' traffic.
	Rate  float64 `json:"bytes_s"`
	Share float64 `json:"share"`
}

// KeepAliveShare is the share of all traffic below which a link carries only keep-alives and routing, and no
// operations.
const KeepAliveShare = 0.01

// InUse reports whether operations used the links.
func (c Carried) InUse() bool { return c.Share > KeepAliveShare }

// SourceUI is the source of events fired from the dashboard.
const SourceUI = "ui"

const (
	EventBegun    = "begun"    // the change is in progress
	EventActive   = "active"   // the change is complete and holds
	EventReverted = "reverted" // it was reverted completely
	EventFailed   = "failed"   // see Error; partial changes were reverted
	EventSkipped  = "skipped"  // it never began: its condition was not met
)

// Step is one change by an event. It is accepted when its command reports success, and complete when the change is
// really done, as the database reports for its members. For changes that take effect at once, the two are equal.
type Step struct {
	Due       Moment  `json:"due"`
	Began     *Moment `json:"began,omitempty"`
	Accepted  *Moment `json:"accepted,omitempty"`
	Completed *Moment `json:"completed,omitempty"`
	Bytes     int64   `json:"bytes,omitempty"` // moved data, if the database reports it
	// Members are the changes of single members, in order, of a step that replaces them one after the other.
	Members []MemberStep `json:"members,omitempty"`
	// Observed is what the emulator observed after a change of links; nil if nothing was observed.
	Observed *Observed `json:"observed,omitempty"`
	// Commands are the commands of the user that the step ran.
	Commands []RanCommand `json:"commands,omitempty"`
}

// RanCommand is a command of the user that has ended.
type RanCommand struct {
	Name string `json:"name"` // do, until or undo
	Text string `json:"text"` // with the template filled in
	// Exit is the exit status, -1 if a signal ended the command. Output is the end of its output. Of until they are
	// those of the last try.
	Exit   int    `json:"exit"`
	Output string `json:"output,omitempty"`
}

// MemberStep is the upgrade of one member. It is accepted when the old version has ended, and complete when the database
// reports that the member serves and has caught up with the new one.
type MemberStep struct {
	Node string `json:"node"`
	// From and To are the versions before and after.
	From      string  `json:"from"`
	To        string  `json:"to"`
	Began     Moment  `json:"began"`
	Accepted  *Moment `json:"accepted,omitempty"`
	Completed *Moment `json:"completed,omitempty"`
}

// Moment is a time on two clocks.
type Moment struct {
	NS   int64     `json:"ns"` // since the measurement began
	Wall time.Time `json:"wall"`
}

// Late is the delay between the due time and the start of the step, 0 if it has not started.
func (s *Step) Late() time.Duration {
	if s == nil || s.Began == nil {
		return 0
	}
	return time.Duration(s.Began.NS - s.Due.NS)
}

// Seconds is the time in seconds since the measurement began.
func (m Moment) Seconds() float64 { return time.Duration(m.NS).Seconds() }

// latestEvents keeps the last line of every ID, at the position of its first line.
func latestEvents(events []Event) []Event {
	var out []Event
	at := map[int]int{}
	for _, e := range events {
		if i, ok := at[e.ID]; ok && e.ID != 0 {
			out[i] = e
			continue
		}
		at[e.ID] = len(out)
		out = append(out, e)
	}
	return out
}

// EventImpact is one event of a trial and its effect on the clients' operations.
type EventImpact struct {
	// Name is the event's name in assertions: the name in the experiment, else its kind.
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Source is that of the Event.
	Source string `json:"source,omitempty"`
	// Effect is that of the Event.
	Effect *Effect `json:"effect,omitempty"`
	// AtS and RevertedS are when the event took effect and was reverted, in seconds since the measurement began.
	AtS       float64  `json:"at_s"`
	RevertedS *float64 `json:"reverted_s,omitempty"`
	// AcceptedS and CompleteS belong to changes of membership, in seconds since the request.
	AcceptedS *float64 `json:"accepted_s,omitempty"`
	CompleteS *float64 `json:"complete_s,omitempty"`
	Carried   *Carried `json:"carried,omitempty"` // that of the Event
	Recovery  Recovery `json:"recovery"`
}

// Recovery compares the seconds from an event to the next event, or to the end of the measurement, with the seconds
// before it. docs/recovery.md defines every figure.
type Recovery struct {
	// BaselineS is the length of the period before the event. If it is 0, only figures that need no baseline are set.
	BaselineS     float64 `json:"baseline_s"`
	BaselineOps   float64 `json:"baseline_ops_s"`
	BaselineP99US float64 `json:"baseline_p99_us"`
	// WatchedS is the length of the period after the event.
	WatchedS float64 `json:"watched_s"`
	// Availability by requests and by time: shares of 0 to 1.
	Availability     float64 `json:"availability"`
	AvailabilityTime float64 `json:"availability_time"`
	// UnresponsivePeriods are runs of seconds without any ok operation.
	UnresponsivePeriods  int     `json:"unresponsive_periods"`
	UnresponsiveS        float64 `json:"unresponsive_s"`
	LongestUnresponsiveS float64 `json:"longest_unresponsive_s"`
	// TakeoverS is when the first write after the event was acknowledged; absent if none was.
	TakeoverS *float64 `json:"takeover_s,omitempty"`
	// RecoverS is the time until recovery. If Censored, no recovery was observed, and RecoverS is the observed time.
	RecoverS float64 `json:"recover_s"`
	Censored bool    `json:"censored,omitempty"`
	// DipDepth is the share of the baseline that was missing in the worst second. DipOps are the operations missing
	// until recovery. OvershootOps are those above the baseline, counted separately.
	DipDepth     float64 `json:"dip_depth"`
	DipOps       float64 `json:"dip_ops"`
	OvershootOps float64 `json:"overshoot_ops"`
	// SLAViolationS is the time in seconds that violated the service level.
	SLAViolationS float64 `json:"sla_violation_s"`
}

// ProbeStats describes one kind of operation of the short jobs: the 95th percentile of each job, in microseconds.
type ProbeStats struct {
	Operation string
	P95US     []float64 // of each job, as they began; 0 of one without such an operation
	// BeforeUS is the median of the jobs that ended before the first event, DuringUS of those that overlapped an event;
	// without events all jobs count in DuringUS. They are 0 without jobs.
	BeforeUS, DuringUS float64
	// HighestUS is the maximum over all jobs; the job began at HighestAtS seconds of the measurement.
	HighestUS, HighestAtS float64
}

// ProbeStats returns the statistics of the trial's short jobs, ordered by operation.
func (t Trial) ProbeStats() []ProbeStats {
	jobs := slices.SortedFunc(slices.Values(t.Probes), func(a, b Probe) int { return cmp.Compare(a.StartS, b.StartS) })
	names := map[string]bool{}
	for _, j := range jobs {
		for name := range j.Operations {
			names[name] = true
		}
	}
	var out []ProbeStats
	for _, name := range slices.Sorted(maps.Keys(names)) {
		seen := ProbeStats{Operation: name}
		var before, during []float64
		for _, j := range jobs {
			o := j.Operations[name]
			p95 := o.Latency().P95
			seen.P95US = append(seen.P95US, p95)
			if o.Count == 0 {
				continue
			}
			switch {
			case j.overlapsEvent(t.Events):
				during = append(during, p95)
			case j.endedBefore(t.Events):
				before = append(before, p95)
			}
			if p95 > seen.HighestUS {
				seen.HighestUS, seen.HighestAtS = p95, j.StartS
			}
		}
		seen.BeforeUS, seen.DuringUS = upperMedian(before), upperMedian(during)
		out = append(out, seen)
	}
	return out
}

func (p Probe) endedBefore(events []EventImpact) bool {
	return !slices.ContainsFunc(events, func(h EventImpact) bool { return p.StartS+p.DurationS > h.AtS })
}

func (p Probe) overlapsEvent(events []EventImpact) bool {
	return len(events) == 0 || slices.ContainsFunc(events, func(h EventImpact) bool {
		return p.StartS+p.DurationS > h.AtS &&
			p.StartS < h.EndS()
	})
}

// EndS is when the event ceased to be in force, in seconds since the measurement began: the completion of a change of
// membership, the reversal of a fault, else infinity.
func (h EventImpact) EndS() float64 {
	switch {
	case h.RevertedS != nil:
		return *h.RevertedS
	case h.CompleteS != nil && h.Effect != nil && h.Effect.Member != "":
		return h.AtS + *h.CompleteS
	}
	return math.Inf(1)
}

func upperMedian(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
