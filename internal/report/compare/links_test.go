package compare

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"skerry/internal/record"
)

// linked is a trial with a link between Oslo and Pune.
func linked(l record.LinkFidelity) record.Trial {
	x := trial(100, 1000, 2)
	l.ID, l.From, l.To, l.Answered = "Oslo~Pune", "Oslo", "Pune", true
	x.Fidelity.Links = []record.LinkFidelity{l}
	return x
}

// An emulated copy is compared with the real link by their measured values.
func TestCompareRealWithEmulated(t *testing.T) {
	real := func(ms float64) record.Trial {
		return linked(record.LinkFidelity{Real: true, RTTMS: 1, Seen: &record.LinkSeen{Sent: 100, Lost: 2, MedianMS: ms, P99MS: 2 * ms}})
	}
	copied := linked(record.LinkFidelity{SetRTTMS: 21, RTTMS: 21.2, RTTP99MS: 22})
	copied.Fidelity.Links[0].From, copied.Fidelity.Links[0].To = "Pune", "Oslo" // reversed, as in another topology
	p := pairOf([]record.Trial{real(20), real(22)}, []record.Trial{copied})
	if len(p.Links) != 1 {
		t.Fatalf("%+v", p.Links)
	}
	l := p.Links[0]
	if !l.A.Real || l.A.RTTMS != 21 || l.A.P99MS != 42 || l.A.Loss != 0.02 || l.B.Real || l.B.SetMS != 21 || math.Abs(l.Ratio-21.2/21) > 1e-9 {
		t.Errorf("%+v", l)
	}
	r := Report{Pairs: []Pair{p}}
	var text bytes.Buffer
	must(t, r.Text(&text, false))
	if b := text.String(); !strings.Contains(b, "Round trips of links") || !strings.Contains(b, "21.00 ms, p99 42.00, 2 % lost, real") ||
		!strings.Contains(b, "1.010") {
		t.Errorf("links are not told:\n%s", b)
	}
	if p := pairOf([]record.Trial{copied}, []record.Trial{copied}); p.Links != nil {
		t.Errorf("both emulated: %+v", p.Links)
	}
}
