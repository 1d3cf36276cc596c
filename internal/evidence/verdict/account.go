package verdict

import (
	"fmt"
	"math"
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

// accountFaults are the reasons for which what the emulator observed on links makes a trial suspect.
func accountFaults(a record.Account) (out []reason) {
	for _, b := range a.Broken {
		out = append(out, one(b.Beyond, LinkLaw, "%s", LawText(b))...)
	}
	if j := a.Jitter; j != nil && linkcheck.OffJitter(*j) {
		out = append(out, because(LinkJitter, "%s", jitterText(*j)))
	}
	if c := a.Changes; c != nil && c.Worst != nil {
		u, way := *c.Worst, ""
		if u.Back {
			way = ", back"
		}
		out = append(out, one(linkcheck.Ignored(u), LinkChange,
			"link %s%s, %.1f s: %d packets crossed after a change of it, and none obeyed the change within 200 ms%s",
			u.Link, way, u.AtS, u.Packets, more(c.Unconfirmed-1, "other changes of directions"))...)
	}
	return out
}

// LawText says which packets broke a law, and by how much.
func LawText(b record.Broken) string {
	when := fmt.Sprintf("%d s", b.T)
	if b.T < 0 {
		when = "the whole measurement"
	}
	worst := time.Duration(b.WorstMS * float64(time.Millisecond))
	return fmt.Sprintf("link %s to %s, %s: %d of %d packets "+lawTexts[b.Law]+"%s", b.Link, b.To, when, b.Packets, b.Of, length(worst), more(b.Times-1, "other seconds of links"))
}

// jitterText says how mean and standard deviation differ from what was set.
func jitterText(j record.Jitter) string {
	if math.Abs(j.MeanMS) > j.MeanLimitMS {
		return fmt.Sprintf("link %s to %s: jitter moves the mean delay by %.2f ms (limit %.2f ms)", j.Link, j.To, j.MeanMS, j.MeanLimitMS)
	}
	return fmt.Sprintf("link %s to %s: the standard deviation of the delay is %.2f ms, set were %.2f ms (limits %.2f and %.2f ms)",
		j.Link, j.To, j.SDMS, j.SetSDMS, j.LeastSDMS, j.MostSDMS)
}

func more(n int64, what string) string {
	if n < 1 {
		return ""
	}
	return fmt.Sprintf("; so in %d %s", n, what)
}

// length writes a duration with two or three digits.
func length(d time.Duration) string {
	if d >= time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
