package trial

import (
	"testing"
	"time"

	"skerry/internal/evidence/verdict"
	"skerry/internal/experiment"
	"skerry/internal/lab"
	"skerry/internal/link/probe"
	"skerry/internal/record"
)

// The summary of a real link covers all echoes of a trial, and a link without configured values has no error.
func TestRealLinksSummary(t *testing.T) {
	k := lab.Link{ID: "a~b", A: "a", B: "b", Real: true, Way: 10 * time.Millisecond}
	r := newRealLinks([]lab.Link{k})
	for i := range 100 {
		r.add("a~b", probe.RTTResult{Sent: 2, Lost: 1, Samples: []time.Duration{time.Duration(i+1) * time.Millisecond}})
	}
	got := r.summarise()["a~b"]
	if got.Sent != 200 || got.Lost != 100 || got.MinMS != 1 || got.MedianMS != 50 || got.P99MS != 99 || got.MaxMS != 100 ||
		got.JitterMS < 28 || got.JitterMS > 29 {
		t.Errorf("%+v", got)
	}
	x := newLinkFidelity(k, probe.RTTResult{Samples: []time.Duration{20 * time.Millisecond}, Median: 20 * time.Millisecond})
	if !x.Real || !x.Answered || x.RTTMS != 20 || x.RTTErrorMS != 0 || k.RTT() != 20*time.Millisecond {
		t.Errorf("%+v", x)
	}
	f := newFindings(t)
	f.links = []record.LinkFidelity{x}
	f.drive.Duration = shortestReal
	f.sampled = int(shortestReal / time.Second)
	if v := verdict.Judge(f.evidence(experiment.Experiment{}), wide); v.State != record.Suspect {
		t.Error("a trial is valid although its real links were not probed")
	}
	f.real = r.summarise()
	if v := verdict.Judge(f.evidence(experiment.Experiment{}), wide); v.State != record.Valid {
		t.Errorf("%+v", v)
	}
	if all := addSeen(f.links, f.real); all[0].Seen == nil || all[0].Seen.Sent != 200 {
		t.Errorf("%+v", all)
	}
}
