package experiment

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"skerry/internal/topology"
)

// outline writes the cloud that an experiment asks for, and what it asserts.
func (e Experiment) outline(w io.Writer) {
	cloud := e.origin.cloud
	least, most := math.Inf(1), 0.0
	for _, l := range cloud.Links {
		rtt := roundTripMS(l)
		least, most = min(least, rtt), max(most, rtt)
	}
	if n := len(cloud.Links); n > 0 {
		fmt.Fprintf(w, "  %d links, round trips of %.4g to %.4g ms before any scale\n", n, least, most)
	}
	if cloud.Overlay.Routed() {
		fmt.Fprintf(w, "  routes: %s finds ways over several links\n", cloud.Overlay.Kind)
	} else {
		fmt.Fprintf(w, "  routes: each packet takes the one link between its two nodes\n")
	}
	e.places(w)
	for _, a := range e.Assert {
		fmt.Fprintf(w, "  asserts %s\n", a)
	}
}

func roundTripMS(l topology.Link) float64 {
	return float64(l.AB.Latency+l.BA.Latency) / float64(time.Millisecond)
}

// Links returns the links of the experiment's cloud, as they are before any scale.
func (v Validation) Links() []topology.Link { return v.experiment.origin.cloud.Links }

// outlasting are notes about events that the end of the trial cuts short.
func (e Experiment) outlasting() (notes []string) {
	end := time.Duration(e.Stop.Time)
	for _, x := range e.Events {
		if x.At == nil || x.For == nil || x.When != "" || end == 0 {
			continue
		}
		begin, lasts := x.At.Duration(), x.For.Duration()
		if begin+lasts > end {
			name := x.Kind()
			if x.Name != "" {
				name = strings.TrimSpace(x.Name + " (" + name + ")")
			}
			notes = append(notes, fmt.Sprintf("event %s, at %v for %v, outlasts the trial of %v: it is taken back at its end, and its recovery is not seen", name, begin, lasts, end))
		}
	}
	return notes
}
