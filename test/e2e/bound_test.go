package e2e

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"skerry/internal/evidence/bottleneck"
	"skerry/internal/record"
	"skerry/test/testkit"
)

// Each experiment has one bottleneck, whose limit is far below the others, even on a machine that is half as fast and
// busy.
func TestBottleneckIsReported(t *testing.T) {
	const experiment = `
name: bound
topology:
  sites: [Oslo, Bergen, Kirkenes]
  defaults: {%s}
client: %s
database: redis
workload: {%s}
stop: {time: 6s}
warmup: 1s
events: [%s]
retries: 0
`
	// Programs on every node compete for all CPUs: no node gets most of them, and none is idle.
	crowd := fmt.Sprintf("{at: 0s, for: 30s, cpu: {nodes: data, cores: %d}}", runtime.NumCPU())
	for _, tt := range []struct{ links, client, workload, events, by string }{
		{"rtt: 100ms", "Oslo", "name: c, records: 100, threads: 4", "", bottleneck.Distance},
		{"rtt: 5ms", "Oslo", "name: c, records: 100, threads: 4, target: 20", "", bottleneck.Target},
		{"rtt: 1ms, cpu: 0.03", "{site: Oslo, cpu: 2}", "name: a, records: 100, threads: 16", "", bottleneck.Node},
		{"rtt: 1ms", "{site: Oslo, cpu: 0.03}", "name: c, records: 100, threads: 16", "", bottleneck.Client},
		{"rtt: 1ms, bandwidth: 500kbit", "Oslo", "name: c, records: 100, threads: 16", "", bottleneck.Bandwidth},
		{"rtt: 0.1ms", "Oslo", "name: c, records: 100, threads: 4", crowd, bottleneck.Machine},
		// Servers are paused most of the time: no other resource is saturated.
		{"rtt: 0.1ms", "Oslo", "name: c, records: 100, threads: 4", "{at: 1s, for: 5s, pause: data}", bottleneck.Database},
	} {
		t.Run(tt.by, func(t *testing.T) {
			b := benchAlone(t)
			var got record.Bound
			for range 3 { // other work of the machine may saturate the CPUs
				b.run(0, "run", b.write("bound.yaml", fmt.Sprintf(experiment, tt.links, tt.client, tt.workload, tt.events)))
				trials := b.summary(b.path("runs/latest")).Trials
				if len(trials) != 1 || trials[0].Bound == nil {
					t.Fatalf("%s: no trial with a bound: %+v", tt.by, trials)
				}
				got = *trials[0].Bound
				if v := trials[0].Verdict; got.By == bottleneck.Machine && v.State == record.Valid && len(v.Notes) == 0 {
					t.Errorf("%s: bound by the machine, and silently valid", tt.by)
				}
				if got.By != bottleneck.Machine || tt.by == bottleneck.Machine {
					break
				}
			}
			if got.By == bottleneck.Machine && tt.by != bottleneck.Machine {
				testkit.Lacks(t, testkit.Quiet, errors.New(got.Text))
			}
			if got.By != tt.by {
				t.Errorf("bound by %s (%s), want %s: %+v", got.By, got.Text, tt.by, got)
			}
		})
	}
}
