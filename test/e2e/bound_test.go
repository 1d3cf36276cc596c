package e2e

import (
	"errors"
	"fmt"
	"testing"

	"skerry/internal/record"
	"skerry/internal/testkit"
)

// Each experiment is built so that one thing limits it. What it does at most is far from what
// the others allow, on a machine that is half as fast and busy.
func TestWhatBoundIsTold(t *testing.T) {
	const experiment = `
name: bound
topology:
  sites: [Oslo, Bergen, Kirkenes]
  defaults: {%s}
client: %s
database: redis
workload: {%s}
stop: {time: 4s}
warmup: 1s
retries: 0
`
	b := benchAlone(t)
	for _, tt := range []struct{ links, client, workload, by string }{
		{"rtt: 100ms", "Oslo", "name: c, records: 100, threads: 4", "distance"},
		{"rtt: 5ms", "Oslo", "name: c, records: 100, threads: 4, target: 20", "target"},
		{"rtt: 1ms, cpu: 0.03", "{site: Oslo, cpu: 2}", "name: a, records: 100, threads: 16", "node"},
		{"rtt: 1ms", "{site: Oslo, cpu: 0.03}", "name: c, records: 100, threads: 16", "client"},
		{"rtt: 1ms, bandwidth: 500kbit", "Oslo", "name: c, records: 100, threads: 16", "bandwidth"},
	} {
		var got record.Bound
		for range 3 { // what the machine does beside it may fill the processors
			b.run(0, "run", b.write("bound.yaml", fmt.Sprintf(experiment, tt.links, tt.client, tt.workload)))
			trials := b.summary(b.path("runs/latest")).Trials
			if len(trials) != 1 || trials[0].Bound == nil {
				t.Fatalf("%s: no trial with a bound: %+v", tt.by, trials)
			}
			if got = *trials[0].Bound; got.By != "machine" {
				break
			}
		}
		if got.By == "machine" {
			testkit.Lacks(t, testkit.Quiet, errors.New(got.Text))
		}
		if got.By != tt.by {
			t.Errorf("bound by %s (%s), want %s: %+v", got.By, got.Text, tt.by, got)
		}
	}
}
