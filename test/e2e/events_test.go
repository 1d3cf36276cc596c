package e2e

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"skerry/internal/record"
)

// eventful is a cluster of four on five sites; the trial ends when its events are over.
const eventful = `
name: eventful
engine: userspace
topology:
  sites: [Oslo, Bergen, Narvik, Vardo, Moss]
  defaults: {rtt: 10ms, bandwidth: 200mbit}
client: Oslo
database: {name: redis, count: 4}
workload: {name: a, records: 300, threads: 4, timeout: 2s}
warmup: 500ms
stop: {time: 80s, after_events: 1s}
retries: 0
`

// events returns the events of a run's first trial, by kind.
func (b *bench) events() map[string]record.Event { return b.eventsOf(1) }

func (b *bench) eventsOf(trial int) map[string]record.Event {
	b.t.Helper()
	d, err := record.Open(b.path("runs/latest"))
	if err != nil {
		b.t.Fatal(err)
	}
	list, err := d.Events(trial)
	if err != nil {
		b.t.Fatal(err)
	}
	events := map[string]record.Event{}
	for _, e := range list {
		events[e.Kind] = e
	}
	return events
}

func TestEventsAreInjectedAndReverted(t *testing.T) {
	b := newBench(t)
	r := b.run(0, "run", b.write("eventful.yaml", eventful+`
events:
  - {at: 500ms, for: 1s, latency: {of: Bergen, scale: 3}}
  - {at: 500ms, for: 1s, loss: {between: [Narvik, Vardo], add: 2%}}
  - {at: 1s, for: 1s, partition: {groups: [[Narvik], [Vardo]], one_way: true}}
  - {at: 1s, for: 1s, link_flap: {between: [Bergen, Vardo], down: 100ms, up: 300ms}}
  - {at: 1s, for: 1s, cpu: {nodes: Bergen, cores: 0.2}}
  - {at: 1s, for: 1s, memory: {nodes: Bergen, size: 32MiB}}
  - {at: 1s, for: 1s, network_load: {from: Bergen, to: [Narvik, Vardo], rate: 5mbit}}
  - {at: 1s, for: 1s, disk_full: {nodes: Moss, size: 32MiB}}
  - {at: 2s, for: 500ms, pause: Vardo}
`))
	s := b.summary(b.path("runs/latest"))
	if x := s.Trials[0]; x.State != record.TrialOK || x.Stopped != "events" {
		t.Errorf("%s, stopped by %q: %s\n%s", x.State, x.Stopped, x.Error, r.stderr.String())
	}
	events := b.events()
	for _, kind := range []string{"latency", "loss", "partition", "link_flap", "cpu", "memory", "network_load", "disk_full", "pause"} {
		e := events[kind]
		if e.State != record.EventReverted || e.Apply.Completed == nil || e.Revert == nil || e.Revert.Completed == nil {
			t.Errorf("%s: %+v", kind, e)
		}
	}
	contains(t, r.stdout.String(), "network_load")
}

func TestMembersJoinAndLeaveUnderLoad(t *testing.T) {
	b := newBench(t)
	b.run(0, "run", b.write("eventful.yaml", eventful+`
events:
  - {name: grow, at: 1s, join: spare}
  - {name: shrink, when: completed, leave: Vardo}
`))
	x := b.summary(b.path("runs/latest")).Trials[0]
	if x.State != record.TrialOK || x.Outcomes.OK == 0 {
		t.Fatalf("%s: %s", x.State, x.Error)
	}
	for _, kind := range []string{"join", "leave"} {
		e := b.events()[kind]
		if e.State != record.EventActive {
			t.Errorf("%s is %s: %s", kind, e.State, e.Error)
			continue
		}
		if s := e.Apply; s.Accepted.NS <= s.Began.NS || s.Completed.NS < s.Accepted.NS {
			t.Errorf("%s began at %.2f s, was accepted at %.2f s and complete at %.2f s", kind, s.Began.Seconds(), s.Accepted.Seconds(), s.Completed.Seconds())
		}
	}
}

// An event on a dead node fails: it is reported, and the trial is suspect.
func TestFailedEventsMakeTrialsSuspect(t *testing.T) {
	b := newBench(t)
	b.run(0, "run", b.write("eventful.yaml", eventful+`
events:
  - {at: 1s, for: 4s, kill: Vardo}
  - {at: 2s, for: 1s, stop: Vardo}
`))
	events := b.events()
	if e := events["stop"]; e.State != record.EventFailed || !strings.Contains(e.Error, "is down already") {
		t.Errorf("stopping a stopped node: %s, %s", e.State, e.Error)
	}
	if e := events["kill"]; e.State != record.EventReverted {
		t.Errorf("the kill is %s: %s", e.State, e.Error)
	}
	x := b.summary(b.path("runs/latest")).Trials[0]
	if x.State != record.TrialOK || x.Verdict.State != record.Suspect ||
		!slices.ContainsFunc(x.Verdict.Reasons, func(r string) bool { return strings.Contains(r, "Vardo stopped") }) {
		t.Errorf("%s, %s: %v", x.State, x.Verdict.State, x.Verdict.Reasons)
	}
}

// Two leaves at the same time, in a partition, with a paused member and a restarting one.
func TestConcurrentEvents(t *testing.T) {
	b := newBench(t)
	b.run(0, "run", b.write("eventful.yaml", strings.Replace(eventful, "count: 4", "count: 5", 1)+`
events:
  - {at: 1s, leave: Moss}
  - {at: 1s, link_down: {between: [Vardo, Narvik]}, for: 500ms}
  - {at: 1s, for: 1s, pause: Bergen}
  - {at: 1s, restart: Narvik}
  - {name: other, at: 1s, leave: Vardo}
`), "--set", "workload.probes={operations: 20, every: 1s}", "--set", "workload.timeout=500ms", "--set", "stop.after_events=15s")
	// The cluster may accept or refuse each change while its members come and go. Nothing may hang, everything is
	// reported, and the trial measures.
	x := b.summary(b.path("runs/latest")).Trials[0]
	if x.State != record.TrialOK {
		t.Errorf("%s: %s", x.State, x.Error)
	}
	// Short jobs run at the same time: one whose operations all time out ends after ten seconds, and the measurement is
	// longer than the events.
	if len(x.Probes) == 0 {
		t.Error("no short job")
	}
	for _, p := range x.Probes {
		n := int64(0)
		for _, o := range p.Operations {
			n += o.Count + o.Failed
		}
		if n != 20 && p.Error == "" {
			t.Errorf("the short job at %.1f s did %d operations of 20", p.StartS, n)
		}
	}
	for kind, e := range b.events() {
		if e.ID != 0 && !slices.Contains([]string{record.EventActive, record.EventReverted, record.EventFailed}, e.State) {
			t.Errorf("%s is %s", kind, e.State)
		}
	}
}

func TestNodeKilledDuringJoin(t *testing.T) {
	b := newBench(t)
	b.run(0, "run", b.write("eventful.yaml", eventful+`
events:
  - {at: 1s, join: Moss}
  - {at: 1500ms, for: 3s, kill: Moss}
`), "--set", "stop.time=20s")
	x := b.summary(b.path("runs/latest")).Trials[0]
	if x.State != record.TrialOK || x.Verdict.State != record.Suspect && b.events()["join"].State == record.EventFailed {
		t.Errorf("%s, %s: %s %v", x.State, x.Verdict.State, x.Error, x.Verdict.Reasons)
	}
	// On a slow machine the node is killed before it has joined, on a fast one after.
	for kind, e := range b.events() {
		if e.ID != 0 && e.State == record.EventFailed && e.Error == "" || e.State == record.EventBegun {
			t.Errorf("%s is %s, without a reason", kind, e.State)
		}
	}
}

func TestLeaveDuringPartition(t *testing.T) {
	b := newBench(t)
	b.run(0, "run", b.write("eventful.yaml", eventful+`
events:
  - {at: 1s, for: 3s, partition: {groups: [[Narvik], [Bergen, Vardo]]}}
  - {at: 2s, leave: Vardo}
`))
	events := b.events()
	if e := events["partition"]; e.State != record.EventReverted {
		t.Errorf("the partition is %s: %s", e.State, e.Error)
	}
	switch e := events["leave"]; e.State {
	case record.EventFailed: // refused while the members do not see each other
	case record.EventActive:
		if healed := events["partition"].Revert.Began; e.Apply.Completed.NS < healed.NS {
			t.Errorf("the leave completed at %.2f s, during the partition that was healed at %.2f s", e.Apply.Completed.Seconds(), healed.Seconds())
		}
	default:
		t.Errorf("the leave is %s: %s", e.State, e.Error)
	}
}

// A skerry that is killed while a member leaves does not affect the machine: the next command removes its leftovers,
// including paused processes and disks in memory.
func TestRunKilledDuringLeaveIsCleanedUp(t *testing.T) {
	b := newBench(t)
	r := b.command("run", b.write("eventful.yaml", eventful+`
events:
  - {at: 500ms, pause: Bergen}
  - {at: 1s, disk_full: {nodes: Moss, size: 32MiB}}
  - {at: 1s, leave: Vardo}
`)).start()
	b.await("the start of the leave", func() bool {
		lines, err := os.ReadFile(b.path("runs/latest/trials/1.partial/events.jsonl"))
		return err == nil && strings.Contains(string(lines), `"kind":"leave"`)
	})
	r.signal(syscall.SIGKILL)
	r.wait()
	b.run(0, "lab", "sweep")
	for _, l := range append(b.leftovers(), leftoversOf(r.cmd.Process.Pid)...) {
		t.Errorf("left behind: %s", l)
	}
}

// Members are upgraded one after the other with their data, and no write is lost.
func TestRollingUpgradeUnderLoad(t *testing.T) {
	b := newBench(t)
	r := b.run(0, "run", b.write("upgrade.yaml", strings.Replace(eventful, "name: redis,", "name: redis@7.0,", 1)+`
events:
  - {at: 1s, upgrade: {to: redis@8.0, nodes: data}}
audit: true
assert: [lost_writes == 0]
`))
	x := b.summary(b.path("runs/latest")).Trials[0]
	e := b.events()["upgrade"]
	if x.State != record.TrialOK || e.State != record.EventActive || len(e.Apply.Members) != 4 {
		t.Fatalf("%s, %s: upgrade %+v\n%s", x.State, x.Error, e, r.stderr.String())
	}
	for i, m := range e.Apply.Members {
		if !strings.HasPrefix(m.From, "7.0.") || !strings.HasPrefix(m.To, "8.0.") || m.Accepted.NS <= m.Began.NS || m.Completed.NS < m.Accepted.NS {
			t.Errorf("%+v", m)
		}
		if i > 0 && m.Began.NS < e.Apply.Members[i-1].Completed.NS {
			t.Errorf("%s began before %s was complete", m.Node, e.Apply.Members[i-1].Node)
		}
		contains(t, r.stdout.String(), "upgrade "+m.From+" to "+m.To)
	}
	d, err := record.Open(b.path("runs/latest"))
	if err != nil {
		t.Fatal(err)
	}
	if v := d.Run.Versions.Databases; len(v) != 2 || v["redis@7.0"] != e.Apply.Members[0].From || v["redis@8.0"] != e.Apply.Members[0].To {
		t.Errorf("the run records the versions %v", v)
	}
}
