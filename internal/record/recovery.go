package record

// Happening is one event of a trial and what became of the clients' operations around it.
type Happening struct {
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
