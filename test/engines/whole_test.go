package engines

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

const wholeMachines = `name: whole
machines: whole.yaml
place: {Oslo: one, Bergen: two, Narvik: three}
topology: {sites: [Oslo, Bergen, Narvik], defaults: {rtt: 20ms}}
client: Oslo
database: redis
workload: {name: a, records: 100, threads: 4, target: 100}
warmup: 500ms
stop: {time: 2s}
retries: 0
`

// Two of three machines over OpenSSH are a node each: a trial's programs run in their own networks, which do not
// change.
func TestWholeMachines(t *testing.T) {
	r := newRoom(t)
	r.reachable()
	first, rest, _ := strings.Cut(threeMachines, "  - {name: two")
	r.write("whole.yaml", first+"  - {name: two"+strings.ReplaceAll(rest, "LogLevel=ERROR]}}", "LogLevel=ERROR]}, whole: true}"))
	r.write("trial.yaml", wholeMachines)
	r.write("full.yaml", wholeMachines+"events: [{at: 1s, for: 500ms, disk_full: {nodes: Bergen}}]\n")
	lines := func(script string) (string, error) {
		out, err := r.machines["h1"].command("bash", "-ec", `cd "$0"; `+script, r.share).CombinedOutput()
		return string(out), err
	}
	if out, err := lines(`./skerry validate trial.yaml`); err != nil || strings.Count(out, "the whole machine") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
	for what, message := range map[string]string{
		"validate full.yaml": "disk_full is not possible on",
		"validate trial.yaml --set topology.defaults.cpu=1":   "does not allow a limit",
		"validate trial.yaml --set topology.overlay=babel":    "does not allow overlay",
		"lab up ring:3 --machines whole.yaml --place '*=two'": "has several nodes",
	} {
		if out, err := lines("./skerry " + what); err == nil || !strings.Contains(out, message) {
			t.Errorf("%s: %v\n%s", what, err, out)
		}
	}
	out, err := lines(`./skerry run trial.yaml --out /root/runs; cp -rL /root/runs/latest "$0/run"`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, x := range r.trials("run", 1) {
		if x.State != record.TrialOK || x.Goodput == 0 || len(x.Fidelity.Machines) != 3 {
			t.Errorf("trial %d: %s, %g ops/s on %d machines: %s", x.ID, x.State, x.Goodput, len(x.Fidelity.Machines), x.Error)
		}
	}
	// By hand: two nodes are in their machines' networks, and reach the third over a link.
	out, err = lines(`./skerry lab up ring:3,rtt=10ms --name hand --machines whole.yaml --place n1=one
for n in $(./skerry lab status hand --json | grep -o '"name": "n[0-9]*"' | cut -d'"' -f4); do ./skerry lab exec $n -- sh -c 'grep -o eth0 /proc/net/dev; ip -4 route get $(getent hosts n1 | cut -d" " -f1)'; done
./skerry lab down hand`)
	if err != nil || strings.Count(out, "eth0") != 2 || strings.Count(out, "dev lk") != 2 {
		t.Errorf("%v\n%s", err, out)
	}
	for name, m := range r.machines {
		if err := r.sh(m.command("bash", "-c", `! pgrep -x skerry && ! ls /run/skerry/labs/* 2>/dev/null && ! ip -br link | grep lk && ! ip -4 addr | grep 10\.77\. && ! ip route show table all | grep 10\.77\.`)); err != nil {
			t.Errorf("leftovers on %s: %v", name, err)
		}
	}
}
