package report

import (
	"fmt"

	"skerry/internal/record"
)

// lawRow is a law of links that packets broke: the worst second of any direction in any trial.
type lawRow struct {
	Law, Link, Trial, Second, Packets, Worst, Total string
	Bad                                             bool // more than the tolerance
}

// lawNames describe what packets did that broke a law.
var lawNames = map[string]string{
	record.LawEarly: "arrived before its latency and jitter allow",
	record.LawLate:  "arrived after its latency and jitter explain",
	record.LawFast:  "left the queue before its rate allows",
	record.LawSlow:  "left the queue after its rate allows",
}

// laws are the laws that packets broke in the trials that were measured, and a sentence about all packets.
func (m *model) laws() (rows []lawRow, packets string) {
	worst, seen, why := m.broken()
	for _, law := range []string{record.LawEarly, record.LawLate, record.LawFast, record.LawSlow} {
		b, ok := worst[law]
		if !ok {
			continue
		}
		r := lawRow{
			Law: lawNames[law], Link: b.Link + " to " + b.To, Trial: fmt.Sprint(b.trial), Second: fmt.Sprint(b.T),
			Packets: count(b.Packets) + " of " + count(b.Of), Worst: exact(b.WorstMS), Total: count(b.Total), Bad: b.Beyond,
		}
		if b.T < 0 {
			r.Second = "all"
		}
		rows = append(rows, r)
	}
	switch {
	case seen == 0 && why != "":
		return nil, "Packets were not observed: " + why + "."
	case seen == 0:
		return nil, ""
	case len(rows) == 0:
		return nil, fmt.Sprintf("Each of %s packets obeyed the latency, the jitter and the rate that were set when it was on its way.", count(seen))
	}
	return rows, fmt.Sprintf("%s packets were held against the settings that were in force when each was on its way. A few may break a law while the machine holds the emulator up.", count(seen))
}

type brokenIn struct {
	record.Broken
	trial int
}

// broken folds the trials: the worst case of each law with the packets of all trials, how many packets were
// observed, and why none were.
func (m *model) broken() (worst map[string]brokenIn, packets int64, why string) {
	worst = map[string]brokenIn{}
	for _, c := range m.cells {
		for _, t := range c.trials {
			a := t.Fidelity.Account
			if a == nil {
				continue
			}
			packets += a.Packets
			if a.NotMeasured != "" {
				why = a.NotMeasured
			}
			for _, b := range a.Broken {
				before, ok := worst[b.Law]
				b.Total += before.Total
				if !ok || b.Beyond && !before.Beyond || b.Beyond == before.Beyond && b.WorstMS > before.WorstMS {
					worst[b.Law] = brokenIn{b, t.ID}
					continue
				}
				before.Total = b.Total
				worst[b.Law] = before
			}
		}
	}
	return worst, packets, why
}
