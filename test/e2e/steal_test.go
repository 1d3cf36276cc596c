package e2e

import (
	"errors"
	"slices"
	"testing"
	"time"

	"skerry/internal/evidence/verdict"
	"skerry/internal/record"
	"skerry/test/testkit"
)

// disturbed has few operations, which wait for distance, so that a busy machine can execute them, and a driver that
// must not be late.
const disturbed = `
name: disturbed
topology: "ring:3,rtt=4ms"
database: redis
workload: {name: c, records: 100, threads: 2}
warmup: 0s
stop: {time: 5s}
retries: 0
fidelity: {client_late: 1us, host_cpu: 100%, client_cpu: 100%, steal: 100%, emulator_late: 10s, moved: 100%}
`

// If a program with the highest priority takes CPUs away, the seconds are marked and the verdict describes the effect.
func TestStealIsMarked(t *testing.T) {
	b := benchAlone(t)
	thief := b.command("agent", "stress", "steal", "0.3")
	hold, err := thief.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	thief.start()
	defer func() {
		hold.Close() // ends the program
		<-thief.done
	}()
	for thief.stdout.String() == "" {
		select {
		case <-thief.done:
			testkit.Lacks(t, testkit.RealTime, errors.New(thief.stderr.String()))
		case <-time.After(10 * time.Millisecond):
		}
	}
	b.run(0, "run", b.write("disturbed.yaml", disturbed))
	dir := b.path("runs/latest")
	x := b.summary(dir).Trials[0]
	s := x.Fidelity.Stolen
	if s == nil || s.Share == 0 || s.All.P50 == 0 {
		t.Fatalf("no span is marked: %+v", s)
	}
	d, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := d.Timeline(1)
	if err != nil {
		t.Fatal(err)
	}
	marked := 0.0
	for _, row := range seconds {
		marked += row.Stolen
	}
	if marked == 0 {
		t.Error("no second of the timeline is marked")
	}
	// The driver is late by more than a microsecond outside the marks, too.
	if !slices.Contains(x.Verdict.Kinds, string(verdict.DriverLate)) {
		t.Errorf("verdict %+v", x.Verdict)
	}
}
