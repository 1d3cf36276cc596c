package e2e

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

const poolsFile = `
name: beside
topology: mesh:3,rtt=5ms
database: redis
client: {cpu: 1}
workloads:
  - {name: readers, workload: {name: c, threads: 4}}
  - name: writers
    client: {cpu: 1}
    workload: {name: a, threads: 2, properties: {readproportion: "0.1", updateproportion: "0.4", insertproportion: "0.25", deleteproportion: "0.25"}}
stop: {time: 4s}
retries: 0
assert: ["readers.goodput > 1/s", "writers.delete.p95 < 60s", "readers.p99 < 60s"]
`

// Readers and writers drive one Redis at the same time, from separate nodes.
func TestWorkloadsRunConcurrently(t *testing.T) {
	b := newBench(t)
	r := b.command("run", b.write("beside.yaml", poolsFile)).start()
	if code := r.wait(); code != 0 {
		t.Fatalf("exit %d, want 0\n%s", code, r.stderr.String())
	}
	x := b.summary(b.path("runs/latest")).Trials[0]
	if x.State != record.TrialOK || len(x.Pools) != 2 {
		t.Fatalf("trial %s %s with %d workloads, want ok with 2", x.State, x.Error, len(x.Pools))
	}
	ok := int64(0)
	for i, want := range []struct{ name, client string }{{"readers", "client"}, {"writers", "client-writers"}} {
		p := x.Pools[i]
		ok += p.Outcomes.OK
		if p.Name != want.name || p.Client != want.client || p.Goodput <= 0 || p.All.Response.P99 <= 0 || p.Bound.By == "" {
			t.Errorf("workload %+v, want %s at %s with figures", p, want.name, want.client)
		}
	}
	if ok != x.Outcomes.OK {
		t.Errorf("the workloads did %d operations, the trial %d", ok, x.Outcomes.OK)
	}
	for _, name := range []string{"readers.READ", "writers.UPDATE", "writers.INSERT", "writers.DELETE"} {
		if x.Operations[name].Count == 0 {
			t.Errorf("the trial's operations lack %s", name)
		}
	}
	if x.Load == nil || x.Load.Records != 1000 || x.Load.Insert.Response.P95 <= 0 {
		t.Errorf("the recorded load is %+v", x.Load)
	}
	d, err := record.Open(b.path("runs/latest"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := d.PoolSeconds(x.ID)
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]int64{}
	for _, row := range rows {
		if row.T >= 0 {
			counted[row.Pool] += row.OK
		}
	}
	for _, p := range x.Pools {
		if counted[p.Name] != p.Outcomes.OK {
			t.Errorf("the seconds of %s have %d operations, its summary %d", p.Name, counted[p.Name], p.Outcomes.OK)
		}
	}
	show := b.command("show", b.path("runs/latest")).start()
	if code := show.wait(); code != 0 || !strings.Contains(show.stdout.String(), "client-writers") {
		t.Errorf("show: exit %d, without the workloads' table:\n%s", code, show.stdout.String())
	}
}

const partsFile = `
name: parts
topology: {sites: [a, b, c], defaults: {rtt: 10ms}}
database: redis
client: a
audit: true
stop: {time: 4s}
retries: 0
workloads:
  - {name: here, workload: {name: a, records: 100, threads: 4, properties: {insertcount: "50"}}}
  - {name: there, client: b, workload: {name: a, records: 100, threads: 4, properties: {insertstart: "50"}}}
`

// Two clients write, each on half of the table, and the audit reads all of it back.
func TestTwoWritersAreAudited(t *testing.T) {
	b := newBench(t)
	b.run(0, "run", b.write("parts.yaml", partsFile))
	x := b.summary(b.path("runs/latest")).Trials[0]
	if x.Load == nil || x.Load.Records != 100 {
		t.Errorf("the recorded load is %+v, want 100 records", x.Load)
	}
	updates := x.Operations["here.UPDATE"].Count + x.Operations["there.UPDATE"].Count
	a := x.Audit
	if a == nil || a.Keys != 100 || a.Acknowledged < updates || a.Lost+a.Stale+a.Unexpected+a.Unread != 0 || len(a.Replicas) != 3 {
		t.Fatalf("audit: %+v, of %d updates", a, updates)
	}
	if h := a.History; h == nil || h.Result != record.Linearizable {
		t.Errorf("history: %+v", h)
	}
}
