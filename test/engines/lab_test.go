package engines

import (
	"encoding/json"
	"strings"
	"testing"

	"skerry/internal/record"
)

// One lab on three machines over OpenSSH: by hand it comes up, is used and ends; in a trial, the part of each machine
// is recorded.
func TestLabOnMachines(t *testing.T) {
	r := newRoom(t)
	r.reachable()
	r.write("three.yaml", threeMachines)
	h1 := r.machines["h1"]
	lines := func(script string) string {
		t.Helper()
		out, err := h1.command("bash", "-ec", `cd "$0"; `+script, r.share).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	lines(`./skerry lab up ring:3,rtt=10ms --name hand --machines three.yaml --place '*=three'`)
	if out := lines(`./skerry lab status hand --json; ./skerry lab down`); !strings.Contains(out, `"state": "up"`) || !strings.Contains(out, `"machine": "three"`) {
		t.Errorf("all on one machine:\n%s", out)
	}
	lines(`./skerry lab up ring:3,rtt=10ms --name hand --machines three.yaml`)
	out := lines(`./skerry lab status hand --json
./skerry lab set --scale 2
./skerry lab exec $(./skerry lab status hand --json | grep -o '"name": "n[0-9]*"' | head -1 | cut -d'"' -f4) -- sh -c 'exit 7' || echo "code $?"
./skerry lab links`)
	for _, want := range []string{`"machine": "one"`, `"machine": "two"`, `"machine": "three"`, "code 7", "20ms"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in\n%s", want, out)
		}
	}
	lines(`./skerry lab down hand`)

	r.write("grid.yaml", strings.Replace(grid, "name: ", "machines: three.yaml\nname: ", 1))
	lines(`./skerry run grid.yaml --set repetitions=1 --set topology.defaults.bandwidth=50mbit --out /root/runs && cp -rL /root/runs/latest "$0/run"`)
	measured := 0 // links with a limit, over all trials
	for _, x := range r.trials("run", 4) {
		told, _ := json.Marshal(x.Fidelity.Machines)
		if x.State != record.TrialOK || len(x.Fidelity.Machines) == 0 {
			t.Errorf("trial %d: %s %s, machines %s", x.ID, x.State, x.Error, told)
		}
		for _, k := range x.Fidelity.Links {
			if k.SetABbps > 0 && (k.ABbps == 0 || k.BAbps == 0) && !k.TrainDisturbed && !k.TrainStarved {
				t.Errorf("trial %d: the bandwidth of %s was not measured, without a reason: %+v", x.ID, k.ID, k)
			}
			if k.SetABbps > 0 && k.ABbps > 0 {
				measured++
			}
		}
		for _, m := range x.Fidelity.Machines {
			if m.Kernel == "" || m.Cores == 0 || len(m.Nodes) == 0 || m.ClockUncertainUS <= 0 {
				t.Errorf("trial %d: record of %s is %s", x.ID, m.Name, told)
			}
		}
	}
	if measured == 0 {
		t.Error("no trial measured the bandwidth of any link")
	}
	for name, m := range r.machines {
		if err := r.sh(m.command("bash", "-c", `! pgrep -x skerry && ! ls /run/skerry/labs/* 2>/dev/null`)); err != nil {
			t.Errorf("leftovers on %s: %v", name, err)
		}
	}
}
