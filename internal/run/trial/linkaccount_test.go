package trial

import (
	"slices"
	"testing"
	"time"

	"skerry/internal/evidence/verdict"
	"skerry/internal/lab"
	"skerry/internal/link"
	"skerry/internal/record"
)

// changing is a trial whose links change in every way that the account can confirm.
const changing = `
name: changing
engine: userspace
topology:
  sites: [Oslo, Bergen, Narvik]
  defaults: {rtt: 4ms, bandwidth: 100mbit}
client: Oslo
database: redis
workload: {name: a, records: 300, threads: 4}
warmup: 500ms
stop: {time: 8s}
drift: {every: 500ms, steps: [{at: 3s, scale: 2}, {at: 6s, scale: 1}]}
events:
  - {name: narrow, at: 1s, for: 1s, bandwidth: {of: Bergen, set: 1mbit}}
  - {name: far, at: 4s, for: 1s, latency: {of: Oslo, set: 20ms}}
  - {name: cut, at: 5200ms, for: 500ms, link_down: {between: [Oslo, Narvik]}}
  - {name: wide, at: 6500ms, jitter: {between: [Oslo, Bergen], set: 500us}}
fidelity: {host_cpu: 100%, client_late: 1s, emulator_late: 1s, event_late: 1s, steal: 100%}
`

// On the userspace engine every packet obeys the settings while the links change, packets confirm each change, and the
// seconds in directions.parquet contain all traffic.
func TestTrialRecordsLinkAccount(t *testing.T) {
	x, dir := runIn(t, changing, t.TempDir())
	a := x.Fidelity.Account
	if a == nil || a.NotMeasured != "" || a.Directions == 0 || a.Packets == 0 {
		t.Fatalf("account %+v", a)
	}
	for _, kind := range []verdict.Kind{verdict.LinkLaw, verdict.LinkJitter, verdict.LinkChange} {
		if slices.Contains(x.Verdict.Kinds, string(kind)) {
			t.Errorf("verdict %+v", x.Verdict)
		}
	}
	if c := a.Changes; c == nil || c.InEffect == 0 || c.Unconfirmed > 0 {
		t.Errorf("changes %+v", c)
	}
	events, err := dir.Events(x.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"narrow", "far", "cut", "wide"} {
		i := slices.IndexFunc(events, func(e record.Event) bool { return e.Name == name })
		if i < 0 || events[i].Apply == nil {
			t.Fatalf("event %s is missing in %+v", name, events)
		}
		o := events[i].Apply.Observed
		crossed := name != "cut" // a link that is down may meet no packet for a while
		if o == nil || len(o.Unconfirmed) > 0 || crossed && (o.Confirmed == 0 || o.InEffect == nil) {
			t.Errorf("%s: observed %+v", name, o)
		}
	}
	if !slices.ContainsFunc(events, func(e record.Event) bool {
		return e.Kind == "drift" && e.Observed != nil && e.Observed.Confirmed > 0
	}) {
		t.Errorf("no confirmed drift step in %+v", events)
	}
	rows, err := dir.Directions(x.ID)
	if err != nil {
		t.Fatal(err)
	}
	var bytes int64
	for _, r := range rows {
		bytes += r.Bytes
		if !r.Observed || r.T < 0 || float64(r.T) > x.DurationS+1 || r.Packets > 0 && r.DelayMean == 0 {
			t.Errorf("row %+v", r)
		}
	}
	if bytes != x.Traffic.TotalBytes {
		t.Errorf("the seconds contain %d bytes, want %d", bytes, x.Traffic.TotalBytes)
	}
}

// Only seconds of the measurement are recorded, a direction without packets has none, and the rest after the last whole
// second counts, too.
func TestLinkAccount(t *testing.T) {
	zero := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return zero.Add(d) }
	links := []lab.Link{{ID: "a~b", A: "a", B: "b"}, {ID: "a~c", A: "a", B: "c"}}
	stats := func(packets uint64, slow uint64) map[string]link.Stats {
		account := link.Account{Known: true, Packets: packets, Slow: link.Breach{Packets: slow, Worst: time.Second}}
		return map[string]link.Stats{"a~b": {ID: "a~b", AB: link.Counters{Packets: packets, Account: account}}, "a~c": {ID: "a~c"}}
	}
	var l linkAccount
	if rows := l.addReading(at(0), stats(500, 400), links); len(rows) > 0 {
		t.Errorf("rows before the measurement: %+v", rows)
	}
	begin := stats(1000, 900) // in set-up
	l.start(zero, zero, []link.Stats{begin["a~b"], begin["a~c"]})
	var got []record.DirectionSecond
	for _, r := range []struct {
		at            time.Duration
		packets, slow uint64
	}{
		{time.Millisecond, 1000, 900}, {1001 * time.Millisecond, 1100, 900}, {2001 * time.Millisecond, 1100, 900},
		{3001 * time.Millisecond, 1200, 980},
	} {
		got = append(got, l.addReading(at(r.at), stats(r.packets, r.slow), links)...)
	}
	got = append(got, l.finish(at(3500*time.Millisecond), stats(1210, 980), links)...)
	got = append(got, l.addReading(at(4001*time.Millisecond), stats(2000, 1700), links)...) // draining
	var seconds []int64
	for _, r := range got {
		if r.Link != "a~b" || r.From != "a" || r.To != "b" {
			t.Errorf("row %+v", r)
		}
		seconds = append(seconds, r.T)
	}
	if !slices.Equal(seconds, []int64{0, 2, 3}) {
		t.Errorf("seconds %v", seconds)
	}
	e := record.Event{Apply: &record.Step{Observed: &record.Observed{Directions: 3, Confirmed: 2, NoPacket: 1}}}
	l.addChange(&record.Observed{Directions: 4, Superseded: 4})
	a := l.result([]record.Event{e, {}})
	if len(a.Broken) != 1 || a.Broken[0].T != 2 || a.Broken[0].Packets != 80 || a.Broken[0].Of != 100 || !a.Broken[0].Beyond ||
		a.Packets != 210 {
		t.Errorf("account %+v", a)
	}
	if c := a.Changes; c == nil || *c != (record.Changes{Directions: 7, InEffect: 2, NoPacket: 1, Superseded: 4}) {
		t.Errorf("changes %+v", c)
	}
}
