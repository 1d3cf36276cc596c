package linkbench

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// Targets are the figures to reach.
const (
	targetMean         = 0.25 // ms, of round trips
	targetP99          = 0.5  // ms
	targetP99Disturbed = 1.0  // ms, beside an unlimited stream, or with stolen processors
	targetSparse       = 0.05 // ms above a plain veth pair, in the mean
	targetWorst        = 0.15 // ms, the worst packet
	targetBandwidth    = 0.5  // percent
	targetRatio        = 0.70
	targetLong         = 950e6 // bit/s
	targetChange       = 10.0  // ms
	targetIdle         = 2.0   // times what the emulator held against takes
	targetPacket       = 1.1   // times
)

// Text writes r as a table, each figure with its target.
func (r Result) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%d cores, Linux %s, device %s, real-time %v %s\n\n", r.Cores, r.Kernel, r.Device, r.RealTime, r.Reason)
	fmt.Fprintln(t, "what\tmeasured\treach\t")
	for _, x := range r.RTT {
		p99 := targetP99
		if x.Beside == "tcp" || x.Beside == "steal" {
			p99 = targetP99Disturbed
		}
		fmt.Fprintf(t, "RTT error, scale %s, beside %s\tmean %.3f ms, p99 %.3f, max %.3f, %d of %d lost\tmean %.2f, p99 %.1f\t%s\n",
			format(x.Scale), x.Beside, x.ErrorMean, x.ErrorP99, x.ErrorMax, x.Lost, x.Samples+x.Lost,
			targetMean, p99, verdict(x.ErrorP99 <= p99 && (p99 == targetP99Disturbed || x.ErrorMean <= targetMean)))
		if s := x.SameLink; s != nil {
			fmt.Fprintf(t, "  on the stream's link (%.2f Gbit/s)\tmean %.3f ms, p99 %.3f, max %.3f\tp99 %.1f\t%s\n",
				x.StreamBPS/1e9, s.ErrorMean, s.ErrorP99, s.ErrorMax, p99, verdict(s.ErrorP99 <= p99))
		}
	}
	for _, x := range r.Sparse {
		fmt.Fprintf(t, "RTT above veth's mean %.3f ms (max %.3f), %s a second on %d pairs, beside %s, seen by the %s\tmean %.3f ms, worst pair %.3f, p99 %.3f, max %.3f (late %.3f, %.3f)\tmean %.2f, max %.2f above veth's\t%s\n",
			x.VethMean, x.VethMax, format(x.Rate), x.Pairs, x.Beside, x.Seen, x.ExtraMean, x.WorstPair, x.ExtraP99, x.ExtraMax, x.LateP50, x.LateP99,
			targetSparse, targetWorst, verdict(x.ExtraMean <= targetSparse && x.WorstAbove <= targetWorst))
	}
	for _, x := range r.Bandwidth {
		fmt.Fprintf(t, "bandwidth %g Mbit/s\t%.3f Mbit/s, %+.2f %%\twithin %.1f %%\t%s\n", float64(x.Set)/1e6,
			x.Measured/1e6, x.Error, targetBandwidth, verdict(x.Error <= targetBandwidth && -x.Error <= targetBandwidth))
	}
	if x := r.Stream; x != nil {
		fmt.Fprintf(t, "TCP unshaped\t%.1f Gbit/s, veth %.1f, ratio %.2f\t%.2f\t%s\n", x.LinkBPS/1e9, x.VethBPS/1e9,
			x.Ratio, targetRatio, verdict(x.Ratio >= targetRatio))
	}
	for _, x := range r.Grow {
		fmt.Fprintf(t, "%d disjoint links, %d threads\tTCP %.1f Gbit/s, %.0f packets/s; %.1f us of processor a packet\t\t\n",
			x.Links, x.Threads, x.BPS/1e9, x.Packets, x.Microseconds)
	}
	this, _ := costs(r.Cost, costThis)
	other, compared := costs(r.Cost, costAgainst)
	for _, x := range r.Cost {
		fmt.Fprintf(t, "cost of the emulator, %s\tidle %.2f %% of a processor, %.2f us a packet, %.0f packets/s, TCP %.1f Gbit/s\t\t\n",
			x.Emulator, x.Idle, x.Microseconds, x.Packets, x.BPS/1e9)
	}
	if compared {
		idle, packet := this.Idle/other.Idle, this.Microseconds/other.Microseconds
		fmt.Fprintf(t, "cost, this over the other, medians\tidle %.2f, a packet %.2f, packets/s %.2f, TCP %.2f\tidle %.0f, a packet %.1f\t%s\n",
			idle, packet, this.Packets/other.Packets, this.BPS/other.BPS, targetIdle, targetPacket, verdict(idle <= targetIdle && packet <= targetPacket))
	}
	if x := r.Long; x != nil {
		fmt.Fprintf(t, "TCP at %g ms, %g Gbit/s\t%.0f Mbit/s\t%.0f\t%s\n", x.RTT, float64(x.Bandwidth)/1e9,
			x.SteadyBPS/1e6, targetLong/1e6, verdict(x.SteadyBPS >= targetLong))
	}
	if x := r.Change; x != nil {
		fmt.Fprintf(t, "changing %d links\tmedian %.2f ms, max %.2f, %d of %d packets lost\tmax %.0f, none lost\t%s\n", x.Links,
			x.Median, x.Max, x.Lost, x.Sent, targetChange, verdict(x.Max <= targetChange && x.Lost == 0))
	}
	return t.Flush()
}

func verdict(reached bool) string {
	if reached {
		return "reached"
	}
	return "MISSED"
}

func format(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
