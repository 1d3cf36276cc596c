package verdict

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"skerry/internal/record"
)

// limits are those of docs/fidelity.md.
var limits = Limits{
	RTTErrorMS: 0.5, BandwidthError: 0.05, EmulatorLateUS: 1000, EventLateUS: 20000, ClientLateUS: 5000,
	ClientCPUShare: 0.9, HostCPUShare: 0.95, StealShare: 0.05, OthersShare: 0.1, Moved: 0.05,
}

// unknown is the reason of a late driver without steal and below its own CPU limit.
var unknown = record.Stolen{LateLeftP99US: 9000, LateNotFullP99US: 9000}

// stolen is a tenth of a measurement in which figures moved and only the driver was late.
func stolen(moved float64) record.Stolen {
	return record.Stolen{Share: 0.1, Left: 5000, LateLeftP99US: 300, LateNotFullP99US: 9000, Moved: moved, MovedBy: "p99"}
}

// whole is the evidence of a valid trial.
func whole() Evidence {
	return Evidence{
		Links: Present([]record.LinkFidelity{{ID: "a~b", SetRTTMS: 35, Answered: true, RTTMS: 35.2, RTTErrorMS: 0.2, SetABbps: 1000,
			ABbps: 1010}}),
		Account:      Present(record.LinkAccount{Directions: 2, Packets: 40_000}),
		EmulatorLate: Present(Late{US: 120}),
		DriverLate:   Present(90.0),
		DriverCPU:    Present(Use{Cores: 0.5, Of: 2}),
		HostCPU:      Present(Use{Cores: 1.2, Of: 2}),
		Bound:        Present(record.Bound{By: "database", LatencyMS: 100, RoundTripMS: 20}),
		Others:       Present(Use{Cores: 0.19, Of: 2}),
		Steal:        Present(Share{Of: 0.01}),
		Clocks:       NotDue[Clock](),
		Stolen:       Present(unknown),
		Events:       Present(Events{}),
		Stuck:        Present(int64(0)),
		Samples:      Present(Samples{9, 10}),
		Flavors:      Present(3),
		Real:         Present(2),
		Audit:        Present(record.Audit{Acknowledged: 100, Keys: 100}),
	}
}

func links(change func(*record.LinkFidelity)) func(*Evidence) {
	return func(e *Evidence) {
		l := whole().Links.figure[0]
		change(&l)
		e.Links = Present([]record.LinkFidelity{l})
	}
}

func happened(events ...record.Event) func(*Evidence) {
	return func(e *Evidence) { e.Events = Present(NewEvents(events)) }
}

// observed is the evidence with a changed account.
func observed(change func(*record.LinkAccount)) func(*Evidence) {
	return func(e *Evidence) {
		a := e.Account.figure
		change(&a)
		e.Account = Present(a)
	}
}

// broken is a law that 86 of 120 packets violated in one second.
func broken(law string, worstMS float64, times int64) func(*Evidence) {
	return observed(func(a *record.LinkAccount) {
		a.Broken = []record.LawViolation{{Law: law, Link: "Pune~Seoul", From: "Pune", To: "Seoul", T: 12, Packets: 86, Of: 120,
			WorstMS: worstMS, Beyond: times > 0, Times: times, Total: 86}}
	})
}

// jittered is a jitter of 5 ms with an observed deviation.
func jittered(mean, sd float64) func(*Evidence) {
	return observed(func(a *record.LinkAccount) {
		a.Jitter = &record.Jitter{Link: "a~b", To: "b", MeanMS: mean, MeanLimitMS: 0.6, SDMS: sd, SetSDMS: 5, LeastSDMS: 4.2, MostSDMS: 5.8}
	})
}

// unconfirmed is a change of a link that a number of packets did not obey.
func unconfirmed(packets int64) func(*Evidence) {
	return observed(func(a *record.LinkAccount) {
		a.Changes = &record.Changes{}
		a.Changes.Add(record.Observed{Directions: 2, Confirmed: 1,
			Unconfirmed: []record.Unconfirmed{{Link: "a~b", AtS: 12.25, Packets: packets}}})
	})
}

func audited(a record.Audit) func(*Evidence) {
	return func(e *Evidence) { e.Audit = Present(a) }
}

func TestJudge(t *testing.T) {
	late := record.Moment{NS: int64(30 * time.Millisecond)}
	tests := map[string]struct {
		change func(*Evidence)
		kind   Kind
		reason string // part of the only reason; "" for a valid trial
	}{
		"whole": {func(*Evidence) {}, "", ""},
		"RTT":   {links(func(l *record.LinkFidelity) { l.RTTErrorMS = -0.8 }), LinkRTT, "worst 0.80 ms"},
		"a real link": {links(func(l *record.LinkFidelity) {
			l.Real, l.SetRTTMS, l.RTTErrorMS, l.SetABbps, l.ABbps = true,
				0, 0, 0, 0
		}), "", ""},
		"a silent real link": {links(func(l *record.LinkFidelity) { l.Real, l.Answered = true, false }), LinkSilent,
			"1 of 1 links answered no probe"},
		"jitter": {links(func(l *record.LinkFidelity) { l.SetJitterMS, l.RTTErrorMS = 4, 1.5 }), "", ""},
		"lost train": {links(func(l *record.LinkFidelity) { l.TrainLost = true }), LinkTrain,
			"no bandwidth train arrived on 1 of 1 links"},
		"disturbed trains": {links(func(l *record.LinkFidelity) { l.ABbps, l.TrainDisturbed = 0, true }), LinkTrain,
			"the bandwidth of 1 of 1 links could not be measured"},
		"silent link": {links(func(l *record.LinkFidelity) { l.Answered = false }), LinkSilent,
			"1 of 1 links answered no probe"},
		"bandwidth":    {links(func(l *record.LinkFidelity) { l.ABbps = 1200 }), LinkBandwidth, "20.0 %"},
		"no bandwidth": {links(func(l *record.LinkFidelity) { l.ABbps = 0 }), "", ""}, // the sender could not fill the link
		"emulator": {func(e *Evidence) { e.EmulatorLate = Present(Late{US: 5000, Machine: "rack-1"}) }, EmulatorLate,
			"the emulator of rack-1 delivered 1 % of the packets more than 5.0 ms late"},
		"a late change of the rate": {broken(record.LawSlow, 6900, 1), LinkLaw,
			"link Pune~Seoul to Seoul, 12 s: 86 of 120 packets left the queue up to 6.9 s later than its rate allows"},
		"a rate that is exceeded": {broken(record.LawFast, 4, 1), LinkLaw, "left the queue up to 4.00 ms sooner than its rate allows"},
		"a latency that is too short": {broken(record.LawEarly, 4, 1), LinkLaw,
			"arrived up to 4.00 ms sooner than its latency and jitter allow"},
		"a latency that is too long": {broken(record.LawLate, 4, 3), LinkLaw,
			"later than its latency, its jitter and the emulator's lateness explain; also in 2 other seconds of links"},
		"a law within its tolerance": {broken(record.LawSlow, 6900, 0), "", ""},
		"jitter that changes the mean": {jittered(4.6, 5), LinkJitter,
			"link a~b to b: jitter moves the mean delay by 4.60 ms (limit 0.60 ms)"},
		"a jitter that is too small": {jittered(0.1, 3.2), LinkJitter,
			"the standard deviation of the delay is 3.20 ms, set were 5.00 ms (limits 4.20 and 5.80 ms)"},
		"jitter as set": {jittered(-0.5, 5.5), "", ""},
		"a change that did not happen": {unconfirmed(40), LinkChange,
			"link a~b, 12.2 s: 40 packets crossed after a change of it, and none obeyed the change within 200 ms"},
		"a change observed by few packets":  {unconfirmed(9), "", ""},
		"an engine that sees no packets":    {func(e *Evidence) { e.Account = Present(record.LinkAccount{NotMeasured: "netem"}) }, "", ""},
		"driver late":                       {func(e *Evidence) { e.DriverLate = Present(9000.0) }, DriverLate, "9.0 ms late"},
		"driver late, steal without effect": {func(e *Evidence) { e.DriverLate, e.Stolen = Present(9000.0), Present(stolen(0.01)) }, "", ""},
		"driver late, steal with effect": {func(e *Evidence) { e.DriverLate, e.Stolen = Present(9000.0), Present(stolen(0.2)) }, DriverLate,
			"due to stolen CPU time (limit 5.0 ms): without the marked 10 % of the measurement, p99 changes by 20.0 %"},
		"driver late, steal and another cause": {func(e *Evidence) {
			e.DriverLate = Present(9000.0)
			s := stolen(0.01)
			s.LateLeftP99US = 8000
			e.Stolen = Present(s)
		}, DriverLate, "the client's delay"},
		"driver late, full": {func(e *Evidence) {
			e.DriverLate, e.Stolen = Present(9000.0), Present(record.Stolen{LateLeftP99US: 9000, LateNotFullP99US: 300})
		}, DriverCPU, "saturated its cores"},
		"steal, no matter": {func(e *Evidence) { e.Steal, e.Stolen = Present(Share{Of: 0.3}), Present(stolen(0.01)) }, "", ""},
		"steal, too few operations left": {func(e *Evidence) {
			s := stolen(0.01)
			s.Share = 0.95
			e.Steal, e.Stolen = Present(Share{Of: 0.3}), Present(s)
		}, Steal, "95 % of the measurement is marked, too little remains"},
		"other work": {func(e *Evidence) { e.Others = Present(Use{Cores: 0.64, Of: 2}) }, OtherWork,
			"other programs used 0.64 of the 2 cores of the machine (limit 10 %)"},
		"other work on a machine": {func(e *Evidence) { e.Others = Present(Use{0.64, 2, "rack-2"}) }, OtherWork, "of rack-2"},
		"other work, not known":   {func(e *Evidence) { e.Others = Unknown[Use]("no control groups") }, "", ""},
		// etcd at 200 operations/s on a busy machine: the driver had the higher weight and was on time.
		"changed, nothing late": {func(e *Evidence) {
			e.Stolen = Present(record.Stolen{Share: 0.53, Left: 1800, LateLeftP99US: 300, LateNotFullP99US: 300, Moved: 0.55, MovedBy: "p99"})
		}, Disturbed, "CPU time was stolen from the trial: without the marked 53 % of the measurement, p99 changes by 55.0 % (limit 5 %)"},
		"changed, too few operations left": {func(e *Evidence) {
			e.Stolen = Present(record.Stolen{Share: 0.53, Left: 100, Moved: 0.55, MovedBy: "p99"})
		}, "", ""},
		"changed by trials of the run": {func(e *Evidence) {
			e.Stolen = Present(record.Stolen{Share: 0.53, Left: 1800, LateLeftP99US: 300, LateNotFullP99US: 300, Moved: 0.55, MovedBy: "p99",
				OwnTrials: true})
		}, "", ""},
		"little change, nothing late": {func(e *Evidence) { e.Stolen = Present(stolen(0.04)) }, "", ""},
		"driver CPU": {func(e *Evidence) { e.DriverCPU = Present(Use{Cores: 1.95, Of: 2}) }, DriverCPU,
			"used 1.95 of its 2 cores: the client, not the database"},
		"host CPU": {func(e *Evidence) { e.HostCPU = Present(Use{1.99, 2, "rack-2"}) }, HostCPU,
			"bound by rack-2, which used 1.99 of its 2 cores on average: CPU, not the network"},
		"host CPU, limited by distance": {func(e *Evidence) {
			e.HostCPU, e.Bound = Present(Use{Cores: 1.99, Of: 2}), Present(record.Bound{By: "distance", LatencyMS: 100, RoundTripMS: 95})
		}, "", ""},
		"host CPU, with a target": {func(e *Evidence) {
			e.HostCPU, e.Bound = Present(Use{Cores: 1.99, Of: 2}), Present(record.Bound{By: "target", LatencyMS: 100, RoundTripMS: 20})
		}, HostCPU, "bound by the machine"},
		"steal":         {func(e *Evidence) { e.Steal = Present(Share{0.3, "rack-2"}) }, Steal, "30 % of the CPU time of rack-2"},
		"a known clock": {func(e *Evidence) { e.Clocks = Present(Clock{9000, 9000, "rack-2"}) }, "", ""},
		"a drifting clock": {func(e *Evidence) { e.Clocks = Present(Clock{9000, 12000, "rack-2"}) }, MachineClock,
			"the clock of rack-2 is known to 9.0 ms, and moved by 12.0 ms"},
		"late event": {happened(record.Event{Apply: &record.Step{Began: &late}}), EventLate, "more than 30.0 ms late"},
		"failed event": {happened(record.Event{ID: 2, Message: "kill Pune", State: record.EventFailed, Error: "no such\nlog"}),
			EventFailed, "event 2 (kill Pune) failed: no such"},
		"skipped event": {happened(record.Event{ID: 1, Message: "kill Pune", State: record.EventSkipped, Error: "the trial ended"}),
			EventSkipped, "was skipped: the trial ended"},
		"fired event": {happened(record.Event{Source: record.SourceUI}), EventByHand, "an event was fired by hand"},
		"fired events": {happened(record.Event{Source: record.SourceUI}, record.Event{Source: record.SourceUI}), EventByHand,
			"2 events were"},
		"stuck":         {func(e *Evidence) { e.Stuck = Present(int64(3)) }, Stuck, "3 operations exceeded"},
		"few samples":   {func(e *Evidence) { e.Samples = Present(Samples{4, 10}) }, NoEvidence, "sampled in 4 of 10 seconds"},
		"blink":         {func(e *Evidence) { e.Samples = Present(Samples{0, 0}) }, "", ""},
		"lost write":    {audited(record.Audit{Lost: 2}), Audit, "audit: 2 acknowledged writes were lost"},
		"stale copy":    {audited(record.Audit{Stale: 1}), Audit, "older than what was acknowledged"},
		"unexpected":    {audited(record.Audit{Unexpected: 1}), Audit, "never written there"},
		"unread record": {audited(record.Audit{Unread: 1}), NoEvidence, "could not be read back"},
		"unread replica": {audited(record.Audit{Replicas: []record.ReplicaAudit{{Node: "Pune", Error: "refused\nat ..."}}}), NoEvidence,
			"audit: the copy on Pune could not be read: refused"},
		"violated":        {audited(record.Audit{History: &record.HistoryAudit{Result: record.Violated}}), "", ""},
		"kernel's engine": {func(e *Evidence) { e.EmulatorLate = NotDue[Late]() }, "", ""},
		"no audit":        {func(e *Evidence) { e.Audit = NotDue[record.Audit]() }, "", ""},
		"no flavors":      {func(e *Evidence) { e.Flavors = NotDue[int]() }, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := whole()
			tt.change(&e)
			v := Judge(e, limits)
			if tt.reason == "" {
				if v.State != record.Valid || len(v.Reasons)+len(v.Kinds) > 0 {
					t.Errorf("got %+v, want valid", v)
				}
				return
			}
			if v.State != record.Suspect || len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0], tt.reason) ||
				!slices.Equal(v.Kinds, []string{string(tt.kind)}) {
				t.Errorf("got %+v, want one reason of kind %s with %q", v, tt.kind, tt.reason)
			}
		})
	}
}

// Without any one piece of evidence, the trial is suspect with the reason; a piece that was never provided counts as
// missing.
func TestMissingPieces(t *testing.T) {
	taken := map[string]func(*Evidence){
		"Links":        func(e *Evidence) { e.Links = Missing[[]record.LinkFidelity]("gone") },
		"Account":      func(e *Evidence) { e.Account = Missing[record.LinkAccount]("gone") },
		"EmulatorLate": func(e *Evidence) { e.EmulatorLate = Missing[Late]("gone") },
		"DriverLate":   func(e *Evidence) { e.DriverLate = Missing[float64]("gone") },
		"DriverCPU":    func(e *Evidence) { e.DriverCPU = Missing[Use]("gone") },
		"HostCPU":      func(e *Evidence) { e.HostCPU = Missing[Use]("gone") },
		"Bound":        func(e *Evidence) { e.Bound = Missing[record.Bound]("gone") },
		"Others":       func(e *Evidence) { e.Others = Missing[Use]("gone") },
		"Steal":        func(e *Evidence) { e.Steal = Missing[Share]("gone") },
		"Clocks":       func(e *Evidence) { e.Clocks = Missing[Clock]("gone") },
		"Stolen":       func(e *Evidence) { e.Stolen = Missing[record.Stolen]("gone") },
		"Events":       func(e *Evidence) { e.Events = Missing[Events]("gone") },
		"Stuck":        func(e *Evidence) { e.Stuck = Missing[int64]("gone") },
		"Samples":      func(e *Evidence) { e.Samples = Missing[Samples]("gone") },
		"Flavors":      func(e *Evidence) { e.Flavors = Missing[int]("gone") },
		"Real":         func(e *Evidence) { e.Real = Missing[int]("gone") },
		"Audit":        func(e *Evidence) { e.Audit = Missing[record.Audit]("gone") },
	}
	suspect := func(t *testing.T, e Evidence, why string) {
		v := Judge(e, limits)
		if v.State != record.Suspect || len(v.Reasons) != 1 || !strings.HasSuffix(v.Reasons[0], ": "+why) || v.Kinds[0] != string(NoEvidence) {
			t.Errorf("got %+v, want missing evidence: %s", v, why)
		}
	}
	for i := range reflect.TypeFor[Evidence]().NumField() {
		name := reflect.TypeFor[Evidence]().Field(i).Name
		t.Run(name, func(t *testing.T) {
			take, ok := taken[name]
			if !ok {
				t.Fatal("a piece of evidence that no case removes")
			}
			e := whole()
			take(&e)
			suspect(t, e, "gone")
			e = whole()
			reflect.ValueOf(&e).Elem().Field(i).SetZero()
			suspect(t, e, "not collected")
		})
	}
}

// A valid trial has a note about disturbances without effect.
func TestNotes(t *testing.T) {
	e := whole()
	e.DriverLate, e.Stolen = Present(9000.0), Present(stolen(0.013))
	want := []string{"CPU time was stolen without effect: without the marked 10 % of the measurement, p99 changes by 1.3 %"}
	if v := Judge(e, limits); !slices.Equal(v.Notes, want) || v.State != record.Valid {
		t.Errorf("got %+v, want %q", v, want)
	}
	for note, change := range map[string]func(*Evidence){
		"the machine used 1.99 of its 2 cores, which changed little: round trips are 95 % of the latency": func(e *Evidence) {
			e.HostCPU, e.Bound = Present(Use{Cores: 1.99, Of: 2}), Present(record.Bound{By: "distance", LatencyMS: 100, RoundTripMS: 95})
		},
		// A trial limited by the machine within the limit, or within a raised limit, is valid with a note.
		"bound by the machine: its processors are 92 % busy": func(e *Evidence) {
			e.HostCPU, e.Bound = Present(Use{Cores: 1.84, Of: 2}), Present(record.Bound{By: "machine", Text: "its processors are 92 % busy"})
		},
	} {
		e := whole()
		change(&e)
		if v := Judge(e, limits); !slices.Equal(v.Notes, []string{note}) || v.State != record.Valid {
			t.Errorf("got %+v, want %q", v, note)
		}
	}
	e = whole()
	s := unknown
	s.Share, s.Left, s.Moved, s.MovedBy, s.OwnTrials = 0.2, 1800, 0.07, "p99", true
	e.Stolen = Present(s)
	if v := Judge(e, limits); !slices.Equal(v.Notes,
		[]string{"other trials of the run used CPU time: without the marked 20 % of the measurement, p99 changes by 7.0 %"}) {
		t.Errorf("reason %q for trials that share the machine", v.Notes)
	}
	e = whole()
	e.Others = Unknown[Use]("no control groups")
	if v := Judge(e, limits); !slices.Equal(v.Notes, []string{"CPU use of other programs is unknown: no control groups"}) {
		t.Errorf("reason %q with unknown use of other programs", v.Notes)
	}
	if v := Judge(whole(), limits); len(v.Notes) > 0 {
		t.Errorf("without lateness: %q", v.Notes)
	}
}

// Saturated CPUs, failed events and audit findings would recur.
func TestTransientKinds(t *testing.T) {
	for kind, want := range map[Kind]bool{Steal: true, OtherWork: true, Disturbed: true, DriverLate: true, LinkRTT: true, HostCPU: false,
		DriverCPU: false, Audit: false, EventFailed: false, NoEvidence: false} {
		if kind.Transient() != want {
			t.Errorf("%s may pass: %v", kind, kind.Transient())
		}
	}
}

func TestKindsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/run-summary.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds() {
		if !strings.Contains(string(page), "`"+string(k)+"`") {
			t.Errorf("kind %s is not in docs/run-summary.md", k)
		}
	}
}

func TestEventLateness(t *testing.T) {
	at := func(d time.Duration) *record.Moment { return &record.Moment{NS: int64(d)} }
	e := NewEvents([]record.Event{
		{Apply: &record.Step{Due: *at(time.Second), Began: at(1001 * time.Millisecond)},
			Revert: &record.Step{Due: *at(2 * time.Second), Began: at(2250 * time.Millisecond)}},
		{Apply: &record.Step{Due: *at(3 * time.Second)}},
	})
	if e.LateUS != 250_000 {
		t.Errorf("late by %g us", e.LateUS)
	}
}

// kinds lists all kinds.
func kinds() []Kind {
	return []Kind{
		LinkSilent, LinkTrain, LinkRTT, LinkBandwidth, LinkLaw, LinkJitter, LinkChange, EmulatorLate, DriverLate, DriverCPU, HostCPU, Steal,
		OtherWork, Disturbed,
		MachineClock,
		EventLate, EventFailed, EventSkipped, EventByHand, Stuck, Audit, NoEvidence,
	}
}
