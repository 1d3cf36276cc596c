package verdict

import (
	"math"

	"skerry/internal/record"
)

// links judges how the links were measured before the workload began.
func (l Limits) links(all []record.LinkFidelity) (out []reason) {
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
	rtt, bandwidth := Worst(all)
	if silent > 0 {
		out = append(out, because(LinkSilent, "%d of %d links answered no probe", silent, len(all)))
	}
	if lost > 0 {
		out = append(out, because(LinkTrain, "no bandwidth train arrived on %d of %d links", lost, len(all)))
	}
	if disturbed > 0 {
		out = append(out, because(LinkTrain, "the bandwidth of %d of %d links could not be measured: the machine held up every train", disturbed, len(all)))
	}
	if slow > 0 {
		out = append(out, because(LinkRTT, "the RTT of %d of %d links is off by more than %.2g ms (worst %.2f ms)", slow, len(all), l.RTTErrorMS, rtt))
	}
	if bandwidth > l.BandwidthError {
		out = append(out, because(LinkBandwidth, "a link's bandwidth is off by %.1f %% (limit %.1f %%)", 100*bandwidth, 100*l.BandwidthError))
	}
	return out
}

// Worst is the largest error of any link's round trip, in ms, and of any bandwidth, relative.
// What was not measured has none.
func Worst(links []record.LinkFidelity) (rtt, bandwidth float64) {
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
