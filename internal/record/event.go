package record

import (
	"encoding/json"
	"time"
)

// Event is one line of events.jsonl: something that happened in a trial. What the
// experiment's events make happen has an ID and is written anew each time it gets on;
// the last line of an ID tells all of it, and that alone is what Dir.Events returns.
type Event struct {
	// T is seconds since the measurement began: of when it began, or was due where it
	// never did.
	T       float64 `json:"t"`
	Kind    string  `json:"kind"` // "scale", "drift", or that of an experiment's event, by its key there
	Message string  `json:"message"`

	// ID counts what the experiment's events make happen, from 1; 0 is anything else.
	ID int `json:"id,omitempty"`
	// Entry is the place in the experiment's list of events, from 0, and Turn how often
	// that entry has made something happen, from 1; Name is the entry's, "" where it has none.
	// Entry is -1 where Source says who fired it in the experiment's stead.
	Entry int    `json:"entry,omitempty"`
	Turn  int    `json:"turn,omitempty"`
	Name  string `json:"name,omitempty"`
	// Source is SourceUI for an event fired from the dashboard, "" for the experiment's own.
	Source string `json:"source,omitempty"`
	// Effect is what it does to its targets; nil for what is no event of an experiment.
	Effect *Effect `json:"effect,omitempty"`
	// Targets are the nodes, or the links, that it happens to.
	Targets []string `json:"targets,omitempty"`
	// Carried is what the links among its targets carried just before; nil where that is not known.
	Carried *Carried `json:"carried,omitempty"`
	// Spec is the entry as the experiment has it.
	Spec json.RawMessage `json:"spec,omitempty"`
	// State is one of the EventX constants.
	State string `json:"state,omitempty"`
	// Apply is the change itself, Revert the one that took it back; nil while that is not
	// due and where it lasts to the trial's end by what it is (a member that left).
	Apply  *Step `json:"apply,omitempty"`
	Revert *Step `json:"revert,omitempty"`
	// Observed is what the emulator observed after a step of the drift; nil where that was not checked.
	Observed *Observed `json:"observed,omitempty"`
	// Error says why it failed or was skipped.
	Error string `json:"error,omitempty"`
}

// Carried is what links carried together in the seconds before something happened to them.
type Carried struct {
	// Rate is in bytes a second, both directions together; Share is their part of what all links carried.
	Rate  float64 `json:"bytes_s"`
	Share float64 `json:"share"`
}

// KeepAliveShare is the share of all that was carried below which a link has what keeps connections and routes
// alive, and not what operations wait for.
const KeepAliveShare = 0.01

// InUse tells whether operations went over the links.
func (c Carried) InUse() bool { return c.Share > KeepAliveShare }

// SourceUI is an event that a person fired from the dashboard.
const SourceUI = "ui"

// States of an event.
const (
	EventBegun    = "begun"    // the change is under way
	EventActive   = "active"   // the change is complete and holds
	EventReverted = "reverted" // it was taken back completely
	EventFailed   = "failed"   // Error says why; what was done of it was taken back
	EventSkipped  = "skipped"  // it never began: what it waited for did not come about
)

// Step is one change that an event makes. A change is accepted when the command that asks
// for it reports success and complete when it is really done, as the database itself says
// of its members; for what takes effect at once the two are the same moment.
type Step struct {
	Due       Moment  `json:"due"`
	Began     *Moment `json:"began,omitempty"`
	Accepted  *Moment `json:"accepted,omitempty"`
	Completed *Moment `json:"completed,omitempty"`
	Bytes     int64   `json:"bytes,omitempty"` // moved, where the database tells
	// Observed is what the emulator observed after a change of links; nil where nothing was.
	Observed *Observed `json:"observed,omitempty"`
}

// Moment is a time on both clocks.
type Moment struct {
	NS   int64     `json:"ns"` // since the measurement began
	Wall time.Time `json:"wall"`
}

// Late is how long after it was due the step began, 0 where it has not.
func (s *Step) Late() time.Duration {
	if s == nil || s.Began == nil {
		return 0
	}
	return time.Duration(s.Began.NS - s.Due.NS)
}

// Seconds is the moment in seconds since the measurement began.
func (m Moment) Seconds() float64 { return time.Duration(m.NS).Seconds() }

// latestEvents keeps the last line of every ID, where its first one was.
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

// EventImpact is one event of a trial and what became of the clients' operations around it.
type EventImpact struct {
	// Name is what assertions call it: the name that the experiment gave, else its kind.
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Source is that of the Event.
	Source string `json:"source,omitempty"`
	// Effect is that of the Event.
	Effect *Effect `json:"effect,omitempty"`
	// AtS is when it took effect, RevertedS when it was taken back, in seconds since the
	// measurement began.
	AtS       float64  `json:"at_s"`
	RevertedS *float64 `json:"reverted_s,omitempty"`
	// AcceptedS and CompleteS are of changes of membership, in seconds since the request.
	AcceptedS *float64 `json:"accepted_s,omitempty"`
	CompleteS *float64 `json:"complete_s,omitempty"`
	Carried   *Carried `json:"carried,omitempty"` // that of the Event
	Recovery  Recovery `json:"recovery"`
}

// Recovery compares the seconds from an event to the next one, or to the end of the
// measurement, with those before it. docs/recovery.md defines every figure.
type Recovery struct {
	// BaselineS is how much time before the event was looked at; 0 when there was none, and
	// then only what needs no baseline is told.
	BaselineS     float64 `json:"baseline_s"`
	BaselineOps   float64 `json:"baseline_ops_s"`
	BaselineP99US float64 `json:"baseline_p99_us"`
	// WatchedS is how much time after the event was looked at.
	WatchedS float64 `json:"watched_s"`
	// Availability by requests and by time: shares of 0 to 1.
	Availability     float64 `json:"availability"`
	AvailabilityTime float64 `json:"availability_time"`
	// UnresponsivePeriods are runs of seconds without any ok operation.
	UnresponsivePeriods  int     `json:"unresponsive_periods"`
	UnresponsiveS        float64 `json:"unresponsive_s"`
	LongestUnresponsiveS float64 `json:"longest_unresponsive_s"`
	// TakeoverS is when the first write after the event was acknowledged; absent when none was.
	TakeoverS *float64 `json:"takeover_s,omitempty"`
	// RecoverS is how long it took to be as before; when Censored, it was not while it was
	// watched, and RecoverS is how long that was.
	RecoverS float64 `json:"recover_s"`
	Censored bool    `json:"censored,omitempty"`
	// DipDepth is the share of the baseline that was missing in the worst second, DipOps
	// the operations that were missing until it recovered, OvershootOps those above the
	// baseline, counted apart.
	DipDepth     float64 `json:"dip_depth"`
	DipOps       float64 `json:"dip_ops"`
	OvershootOps float64 `json:"overshoot_ops"`
	// SLAViolationS counts the seconds that broke the service level.
	SLAViolationS float64 `json:"sla_violation_s"`
}
