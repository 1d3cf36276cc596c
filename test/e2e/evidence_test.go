package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"skerry/internal/record"
)

// audited is a trial with an event and an audit of every acknowledged write, where one assertion cannot hold.
const audited = `
name: audited
engine: userspace
topology:
  sites: [Oslo, Bergen, Narvik]
  defaults: {rtt: 5ms, flavor: {vcpus: 1, steal: 10%, credits: {earn_per_hour: 30}}}
client: Oslo
database: redis
workload: {name: a, records: 300, threads: 4}
warmup: 500ms
stop: {time: 5s}
retries: 0
recovery: {baseline: 2s, hold: 2s}
events:
  - {name: frozen, at: 2s, for: 500ms, pause: Bergen}
audit: true
assert:
  - lost_writes == 0
  - availability > 1%
  - goodput > 1e12
`

func TestAuditAssertionsAndFlavors(t *testing.T) {
	b := newBench(t)
	r := b.run(3, "run", b.write("audited.yaml", audited))
	contains(t, r.stderr.String(), "1 of 3 assertions did not hold: goodput > 1e12")
	contains(t, r.stdout.String(), "acknowledged writes 0 were lost", "frozen (pause)", "2 assertions held")

	x := b.summary(b.path("runs/latest")).Trials[0]
	a := x.Audit
	if a == nil || a.Acknowledged == 0 || a.Keys != 300 || a.Lost+a.Stale+a.Unexpected+a.Unread != 0 || len(a.Replicas) != 3 {
		t.Errorf("audit: %+v", a)
	}
	held := int64(0)
	for _, m := range a.Replicas {
		held += m.Held
	}
	if held < 300 { // each record is on one member
		t.Errorf("the members have %d records", held)
	}
	if h := a.History; h == nil || h.Result != record.Linearizable || h.Operations == 0 {
		t.Errorf("history: %+v", h)
	}
	if len(x.Events) != 1 || x.Events[0].Name != "frozen" || x.Events[0].RevertedS == nil || x.Events[0].Recovery.BaselineS == 0 {
		t.Errorf("events: %+v", x.Events)
	}
	for _, file := range []string{"audit.jsonl", "history.html"} {
		if !exists(b.path("runs/latest/trials/1/" + file)) {
			t.Errorf("%s is missing", file)
		}
	}

	b.run(0, "report", "--dstat", b.path("csv"))
	text, err := os.ReadFile(filepath.Join(b.path("csv"), "1-Bergen.csv"))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), `"usr","sys","idl","wai","stl"`)
	contains(t, b.run(0, "compare", b.path("runs/latest:1"), b.path("runs/latest:1")).stdout.String(), "goodput")
}
