package report

import (
	"fmt"

	"skerry/internal/record"
	"skerry/internal/report/series"
	"skerry/internal/report/svg"
)

// spansOf shade a trial's timeline where its events were in force, or settled, and where
// processors were taken from the driver. last is the end
// of the timeline.
func spansOf(bands []series.Band, last float64) (spans []svg.Span) {
	for _, b := range bands {
		if b.Kind == series.KindStolen {
			spans = append(spans, svg.Span{From: float64(b.From), To: float64(*b.To), Class: "stolen", Name: b.Name + ": " + b.Text})
			continue
		}
		if !b.Began() {
			continue
		}
		from, to := float64(b.From), last
		if b.To != nil {
			to = min(to, float64(*b.To))
		}
		text := fmt.Sprintf(", %s s to %s s", figure(from), figure(to))
		if b.Effect != nil && b.Effect.Settles {
			text = settling(b)
		}
		spans = append(spans, svg.Span{From: from, To: to, Class: "band", Name: b.Name + ": " + b.Text + text + failure(b)})
	}
	return spans
}

// settling says how a change got on.
func settling(b series.Band) (text string) {
	if b.Reverts {
		text = ", reverted"
	}
	text += fmt.Sprintf(", asked for at %s s", figure(float64(b.From)))
	if b.AcceptedS != nil {
		text += fmt.Sprintf(", accepted after %s s", figure(float64(*b.AcceptedS)))
	}
	if b.CompleteS == nil {
		return text + ", not complete"
	}
	return text + fmt.Sprintf(", complete after %s s", figure(float64(*b.CompleteS)))
}

func failure(b series.Band) string {
	if b.State != record.EventFailed {
		return ""
	}
	return ", failed: " + firstLine(b.Error)
}
