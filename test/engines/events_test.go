package engines

import (
	"testing"

	"skerry/internal/event"
	"skerry/internal/evidence/verdict"
	"skerry/internal/record"
	"skerry/test/testkit"
)

// everyEvent is a trial with all kinds of events, on nodes of machines other than the controller's.
const everyEvent = `name: every
machines: three.yaml
topology: {sites: [Oslo, Bergen, Narvik, Tromso], defaults: {rtt: 10ms, bandwidth: 100mbit}}
client: Oslo
database: {name: etcd, nodes: [Oslo, Bergen, Narvik]}
workload: {name: a, records: 200, threads: 8, timeout: 2s}
warmup: 500ms
events:
  - {at: 1s, for: 1s, latency: {of: Bergen, scale: 3}}
  - {when: reverted, for: 1s, bandwidth: {of: Bergen, set: 10mbit}}
  - {when: reverted, for: 1s, loss: {of: Bergen, add: 5%}}
  - {when: reverted, for: 1s, jitter: {of: Narvik, set: 1ms}}
  - {when: reverted, for: 1s, link_down: {between: [Bergen, Narvik], mode: carrier}}
  - {when: reverted, for: 1s, link_flap: {of: Narvik, down: 200ms, up: 200ms}}
  - {when: reverted, for: 1s, partition: {groups: [[Bergen], [Oslo, Narvik]]}}
  - {when: reverted, after: 1s, link_down: {between: [Bergen, Narvik]}}
  - {when: completed, after: 1s, link_up: {between: [Bergen, Narvik]}}
  - {when: completed, after: 1s, for: 1s, kill: Bergen}
  - {when: reverted, after: 1s, stop: Narvik}
  - {when: completed, after: 1s, start: Narvik}
  - {when: completed, after: 1s, restart: {nodes: Bergen, manner: graceful}}
  - {when: completed, after: 1s, pause: Bergen}
  - {when: completed, after: 1s, resume: Bergen}
  - {when: completed, after: 1s, join: Tromso}
  - {when: completed, after: 1s, leave: Tromso}
  - {when: completed, for: 1s, cpu: {nodes: Bergen, cores: 0.2}}
  - {when: reverted, for: 1s, memory: {nodes: Bergen, size: 64MiB}}
  - {when: reverted, for: 1s, disk_full: {nodes: Tromso, size: 384MiB}}
  - {when: reverted, for: 1s, network_load: {from: Bergen, to: [Narvik], rate: 5mbit, protocol: tcp}}
stop: {time: 3m, after_events: 1s}
audit: true
`

// unavailable are the kinds of events that are impossible here, with reasons.
var unavailable = map[string]string{"clock_skew": "no kernel can", "disk_slow": "simulated machines have no separate disk"}

// Every kind of event is injected into nodes on three machines and reverted; no acknowledged write is lost.
func TestEventsOnMachines(t *testing.T) {
	testkit.OptIn(t, "SKERRY_EVENTS", "1 for every kind of event on three machines; two minutes")
	r := newRoom(t)
	r.reachable()
	r.write("three.yaml", threeMachines)
	r.write("every.yaml", everyEvent)
	out, err := r.machines["h1"].command("bash", "-c", `cd "$0" && ./skerry run every.yaml --out /root/runs; code=$?; cp -rL /root/runs/latest "$0/run"; exit $code`, r.share).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, x := range r.trials("run", 1) {
		happened := map[string]bool{}
		for _, e := range x.Events {
			happened[e.Kind] = true
		}
		for _, k := range event.Kinds() {
			if !happened[k.Name] && unavailable[k.Name] == "" {
				t.Errorf("%s did not happen", k.Name)
			}
		}
		for i, kind := range x.Verdict.Kinds {
			if kind == string(verdict.EventFailed) || kind == string(verdict.EventSkipped) {
				t.Errorf("trial %d: %v", x.ID, x.Verdict.Reasons[i])
			}
		}
		if x.State != record.TrialOK || x.Audit == nil || x.Audit.Acknowledged == 0 || x.Audit.Lost != 0 {
			t.Errorf("trial %d: %s %s, the audit found %+v", x.ID, x.State, x.Error, x.Audit)
		}
	}
}
