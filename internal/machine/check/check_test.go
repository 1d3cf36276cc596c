package check

import (
	"strings"
	"testing"
	"time"

	"skerry/internal/machine"
	"skerry/internal/machine/doctor"
	"skerry/internal/machine/inventory"
	"skerry/internal/machine/pathprobe"
	"skerry/internal/machine/rpc"
	"skerry/internal/machine/transport"
)

func TestWrite(t *testing.T) {
	r := Report{
		Machines: []MachineReport{
			{Name: "one", Addr: "10.0.0.1", Agent: rpc.Hello{Version: 1, Cores: 2, Memory: 3 << 30, Kernel: "6.1", Arch: "amd64"},
				Clock:  machine.Clock{Offset: time.Hour, Uncertainty: time.Millisecond},
				Doctor: doctor.Report{Runnable: true, Engine: "netem", Findings: []doctor.Finding{{Name: "clock", State: doctor.Limited, Detail: "slow", Mend: "hurry"}}}},
			{Name: "far", Site: "Oslo", Problem: "far: it cannot be reached", Mend: "walk"},
		},
		Pairs: []PairReport{
			{From: "one", To: "two", Result: pathprobe.Result{Sent: 5, Lost: 1, Min: time.Millisecond, Median: 2 * time.Millisecond, Max: 3 * time.Millisecond, Bandwidth: 1e9}},
			{From: "one", To: "three", Problem: "no answer", Result: pathprobe.Result{Sent: 5, Lost: 5}},
		},
	}
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `MACHINE  SITE  ADDRESS   CORES  MEMORY   KERNEL     ENGINE  CLOCK
one      -     10.0.0.1  2      3.0 GiB  6.1 amd64  netem   +3600000.00 ± 1.00 ms
far      Oslo  -         -      -        -          -       -

FROM  TO     RTT MIN  MEDIAN   MAX      LOST    BANDWIDTH
one   two    1.00 ms  2.00 ms  3.00 ms  1 of 5  1gbit
one   three  -        -        -        5 of 5  -
one: clock: slow
  -> hurry

far: it cannot be reached
  -> walk
one to three: no answer
`
	if b.String() != want {
		t.Errorf("printed\n%swant\n%s", b.String(), want)
	}
	if r.Usable() {
		t.Error("an unreachable machine is reported as usable")
	}
}

// Unreachable machines are reported by name and do not prevent checks of others.
func TestUnreachableMachinesAreListed(t *testing.T) {
	none := []inventory.Entry{{Name: "far", Command: []string{"/bin/false"}}, {Name: "gone", Command: []string{"/nowhere"}}}
	r, err := Check(t.Context(), none, transport.Options{})
	if err != nil || len(r.Machines) != 2 || !strings.HasPrefix(r.Machines[0].Problem, "far: ") || !strings.HasPrefix(r.Machines[1].Problem, "gone: ") || len(r.Pairs) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	swept, err := Sweep(t.Context(), none, transport.Options{})
	if err == nil || len(swept) != 2 || swept[0].Problem == "" || !strings.Contains(err.Error(), "gone: ") {
		t.Errorf("%+v, %v", swept, err)
	}
}
