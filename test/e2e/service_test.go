package e2e

import (
	"testing"

	"skerry/internal/record"
	"skerry/test/testkit"
)

// behind is a cluster whose members are only reached through services, on file systems in files: it serves all YCSB
// operations, a member is killed and revived, one leaves and joins again.
const behind = `
name: behind
topology:
  sites: [{name: s, nodes: 4}]
  volumes: {kind: loop, size: 128MiB}
client: s
database: redis
workload: {name: e, records: 300, threads: 4, timeout: 5s}
events:
  - {name: killed, at: 500ms, for: 500ms, kill: s-2}
  - {name: left, at: 2s, leave: s-4}
  - {name: joined, at: 2100ms, join: s-4} # waits until it has left
stop: {time: 60s, after_events: 500ms}
warmup: 500ms
retries: 0
matrix:
  topology.service: [service-ip, {kind: host-port, ports: auto}]
`

func TestMembersBehindServices(t *testing.T) {
	testkit.Need(t, testkit.Root)
	b := newBench(t)
	r := b.run(0, "run", b.write("behind.yaml", behind))
	s := b.summary(b.path("runs/latest"))
	if !s.Complete || len(s.Trials) != 2 {
		t.Fatalf("complete %v, %d trials, want 2\n%s", s.Complete, len(s.Trials), r.stderr.String())
	}
	for _, x := range s.Trials {
		if x.State != record.TrialOK || x.Outcomes.OK == 0 {
			t.Errorf("trial %d: %s %s, %+v", x.ID, x.State, x.Error, x.Outcomes)
		}
		done := map[string]bool{}
		for _, e := range x.Events {
			done[e.Name] = e.CompleteS != nil || e.RevertedS != nil
		}
		if !done["killed"] || !done["left"] || !done["joined"] {
			t.Errorf("trial %d: completed events %v\n%s", x.ID, done, r.stdout.String())
		}
	}
	for _, l := range leftoversOf(r.cmd.Process.Pid) {
		t.Errorf("left behind: %s", l)
	}
}

// Conflicting ports are reported before anything starts.
func TestConflictingPortsAreRefused(t *testing.T) {
	b := newBench(t)
	for service, want := range map[string]string{
		"{kind: host-port, publish: ['16379:6379']}":       "16379 is assigned to the containers' ports 6379 and 16379",
		"{kind: node-port, range: 30000-30001}":            "too few free ports",
		"{kind: central, publish: ['6379:6379']}":          "port 6379 of s-1 is in use",
		"{kind: host-port, publish: ['7000:80']}":          "no container listens on 80",
		"{kind: host-port, publish: ['7:6379','7:16379']}": "already published for 6379",
	} {
		r := b.run(2, "validate", b.write("behind.yaml", behind), "--set", "matrix.topology.service=["+service+"]")
		contains(t, r.stdout.String()+r.stderr.String(), want)
	}
	for database, want := range map[string]string{
		"etcd": "members of etcd cannot announce another address", "cassandra": "members of cassandra announce the ports",
	} {
		r := b.run(2, "validate", b.write(database+".yaml", one), "--set", "database="+database, "--set", "topology.service=node-port")
		contains(t, r.stdout.String()+r.stderr.String(), want)
	}
}
