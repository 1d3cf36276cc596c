package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"skerry/internal/evidence/linkcheck"
	"skerry/internal/record"
)

// lawTexts complete the sentence "86 of 120 packets ...".
var lawTexts = map[string]string{
	record.LawEarly: "arrived up to %s sooner than its latency and jitter allow",
	record.LawLate:  "arrived up to %s later than its latency, its jitter and the emulator's lateness explain",
	record.LawFast:  "left the queue up to %s sooner than its rate allows",
	record.LawSlow:  "left the queue up to %s later than its rate allows",
}

func judgeAccount(a record.LinkAccount) (out []reason) {
	for _, b := range a.Broken {
		out = append(out, reasonIf(b.Beyond, LinkLaw, "%s", describeViolation(b))...)
	}
	if j := a.Jitter; j != nil && linkcheck.JitterExceeded(*j) {
		out = append(out, newReason(LinkJitter, "%s", describeJitter(*j)))
	}
	if c := a.Changes; c != nil && c.Worst != nil {
		u, way := *c.Worst, ""
		if u.Back {
			way = ", back"
		}
		out = append(out, reasonIf(linkcheck.ChangeIgnored(u), LinkChange,
			"link %s%s, %.1f s: %d packets crossed after a change of it, and none obeyed the change within 200 ms%s",
			u.Link, way, u.AtS, u.Packets, andMore(c.Unconfirmed-1, "other changes of directions"))...)
	}
	return out
}

func describeViolation(b record.LawViolation) string {
	when := fmt.Sprintf("%d s", b.T)
	if b.T < 0 {
		when = "the whole measurement"
	}
	worst := time.Duration(b.WorstMS * float64(time.Millisecond))
	return fmt.Sprintf("link %s to %s, %s: %d of %d packets "+lawTexts[b.Law]+"%s", b.Link, b.To, when, b.Packets, b.Of,
		formatDuration(worst), andMore(b.Times-1, "other seconds of links"))
}

func describeJitter(j record.Jitter) string {
	if math.Abs(j.MeanMS) > j.MeanLimitMS {
		return fmt.Sprintf("link %s to %s: jitter moves the mean delay by %.2f ms (limit %.2f ms)", j.Link, j.To, j.MeanMS, j.MeanLimitMS)
	}
	return fmt.Sprintf("link %s to %s: the standard deviation of the delay is %.2f ms, set were %.2f ms (limits %.2f and %.2f ms)",
		j.Link, j.To, j.SDMS, j.SetSDMS, j.LeastSDMS, j.MostSDMS)
}

func andMore(n int64, what string) string {
	if n < 1 {
		return ""
	}
	return fmt.Sprintf("; also in %d %s", n, what)
}

func formatDuration(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func (l Limits) judgeLinks(all []record.LinkFidelity) (out []reason) {
	var silent, slow, lost, disturbed int
	for _, x := range all {
		if x.TrainLost {
			lost++
		}
		if x.TrainDisturbed {
			disturbed++
		}
		switch {
		case !x.Answered:
			silent++
		case !x.Real && math.Abs(x.RTTErrorMS) > l.RTTErrorMS+x.SetJitterMS:
			slow++
		}
	}
	rtt, bandwidth := WorstLinkErrors(all)
	if silent > 0 {
		out = append(out, newReason(LinkSilent, "%d of %d links answered no probe", silent, len(all)))
	}
	if lost > 0 {
		out = append(out, newReason(LinkTrain, "no bandwidth train arrived on %d of %d links", lost, len(all)))
	}
	if disturbed > 0 {
		out = append(out, newReason(LinkTrain, "the bandwidth of %d of %d links could not be measured: the machine held up every train",
			disturbed, len(all)))
	}
	if slow > 0 {
		out = append(out, newReason(LinkRTT, "the RTT of %d of %d links is off by more than %.2g ms (worst %.2f ms)", slow, len(all),
			l.RTTErrorMS, rtt))
	}
	if bandwidth > l.BandwidthError {
		out = append(out, newReason(LinkBandwidth, "a link's bandwidth is off by %.1f %% (limit %.1f %%)", 100*bandwidth, 100*l.BandwidthError))
	}
	return out
}

// WorstLinkErrors returns the largest error of any link's round trip, in ms, and of any bandwidth, relative. Unmeasured
// links have no error.
func WorstLinkErrors(links []record.LinkFidelity) (rtt, bandwidth float64) {
	for _, l := range links {
		rtt = max(rtt, math.Abs(l.RTTErrorMS))
		for _, d := range [][2]int64{{l.SetABbps, l.ABbps}, {l.SetBAbps, l.BAbps}} {
			if d[0] > 0 && d[1] > 0 {
				bandwidth = max(bandwidth, math.Abs(float64(d[1])/float64(d[0])-1))
			}
		}
	}
	return rtt, bandwidth
}

// Events are the events of a trial, and their lateness: the 99th percentile, in us.
type Events struct {
	Happened []record.Event
	LateUS   float64
}

// NewEvents returns the evidence of a trial's events.
func NewEvents(happened []record.Event) Events {
	return Events{happened, float64(eventLateness(happened)) / float64(time.Microsecond)}
}

func (l Limits) judgeEvents(e Events) (out []reason) {
	out = reasonIf(e.LateUS > l.EventLateUS, EventLate, "1 %% of the events began more than %.1f ms late (limit %.1f ms)", e.LateUS/1000,
		l.EventLateUS/1000)
	byHand := 0
	for _, x := range e.Happened {
		switch x.State {
		case record.EventFailed:
			why, _, _ := strings.Cut(x.Error, "\n") // the database's log follows
			out = append(out, newReason(EventFailed, "event %d (%s) failed: %s", x.ID, x.Message, why))
		case record.EventSkipped:
			out = append(out, newReason(EventSkipped, "event %d (%s) was skipped: %s", x.ID, x.Message, x.Error))
		}
		if x.Source != "" {
			byHand++
		}
	}
	// A trial with additional events is not comparable with its repetitions.
	if byHand == 1 {
		return append(out, newReason(EventByHand, "an event was fired by hand"))
	}
	return append(out, reasonIf(byHand > 1, EventByHand, "%d events were fired by hand", byHand)...)
}

// eventLateness is the lateness of starts and reversals of events, 99th percentile; 0 without events.
func eventLateness(events []record.Event) time.Duration {
	var late []time.Duration
	for _, e := range events {
		for _, s := range []*record.Step{e.Apply, e.Revert} {
			if s != nil && s.Began != nil {
				late = append(late, s.Late())
			}
		}
	}
	if len(late) == 0 {
		return 0
	}
	slices.Sort(late)
	return late[int(math.Ceil(0.99*float64(len(late))))-1]
}

// judgeAudit judges an audit. A history that is not linearizable is no reason, since many databases do not promise it.
func judgeAudit(a record.Audit) (out []reason) {
	for _, f := range []struct {
		n    int64
		what string
	}{
		{a.Lost, "acknowledged writes were lost"}, {a.Stale, "copies were older than what was acknowledged"},
		{a.Unexpected, "values were found that were never written there"},
	} {
		out = append(out, reasonIf(f.n > 0, Audit, "audit: %d %s", f.n, f.what)...)
	}
	// Unread records may be lost too, so the counts may be too low.
	out = append(out, reasonIf(a.Unread > 0, NoEvidence, "audit: %d records could not be read back", a.Unread)...)
	for _, r := range a.Replicas {
		why, _, _ := strings.Cut(r.Error, "\n")
		out = append(out, reasonIf(why != "", NoEvidence, "audit: the copy on %s could not be read: %s", r.Node, why)...)
	}
	return out
}
