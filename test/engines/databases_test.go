package engines

import (
	"slices"
	"strings"
	"testing"

	"skerry/internal/record"
	"skerry/test/testkit"
)

const acrossMachines = `name: across
machines: three.yaml
topology: {sites: [Oslo, Bergen, Narvik], defaults: {rtt: 10ms, bandwidth: 200mbit}}
client: Oslo
database: etcd
workload: {name: a, records: 200, threads: 8}
warmup: 500ms
stop: {time: 3s}
audit: true
`

// Databases with a node on each of three machines start, serve, lose no acknowledged write, and end without leftovers.
func TestDatabasesOnMachines(t *testing.T) {
	names := testkit.OptIn(t, "SKERRY_ACROSS", "which databases run with nodes on three machines, as etcd,galera,redis+overlay=babel,redis+service=central, these two with more of a topology; half a minute to two minutes each")
	r := newRoom(t)
	r.reachable()
	r.write("three.yaml", threeMachines)
	r.write("across.yaml", acrossMachines)
	for name := range strings.SplitSeq(names, ",") {
		r.run(name, func(t *testing.T) {
			dir := "run-" + name
			database, more, _ := strings.Cut(name, "+")
			out, err := r.machines["h1"].command("bash", "-c", `cd "$0" && ./skerry run across.yaml --set database="$1" ${3:+--set topology.$3} --out /root/runs
code=$?; cp -rL /root/runs/latest "$0/$2"; exit $code`, r.share, database, dir, more).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, x := range r.trials(dir, 1) {
				if x.State != record.TrialOK || x.Goodput == 0 || len(x.Fidelity.Machines) != 3 {
					t.Errorf("trial %d: %s, %g ops/s on %d machines: %s", x.ID, x.State, x.Goodput, len(x.Fidelity.Machines), x.Error)
				}
				if x.Audit == nil || x.Audit.Acknowledged == 0 || x.Audit.Lost != 0 || x.Audit.Unread != 0 {
					t.Errorf("trial %d: the audit found %+v", x.ID, x.Audit)
				} else if i := slices.IndexFunc(x.Audit.Replicas, func(a record.ReplicaAudit) bool { return a.Error != "" }); i >= 0 {
					t.Errorf("trial %d: the copy on %s was not read: %s", x.ID, x.Audit.Replicas[i].Node, x.Audit.Replicas[i].Error)
				}
			}
			for name, m := range r.machines {
				if err := r.sh(m.command("bash", "-c", `! pgrep -x skerry && ! ls /run/skerry/labs/* 2>/dev/null`)); err != nil {
					t.Errorf("leftovers on %s: %v", name, err)
				}
			}
		})
	}
}
