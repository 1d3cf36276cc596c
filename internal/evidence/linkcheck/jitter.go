package linkcheck

import (
	"math"
	"sync"
	"time"

	"skerry/internal/evidence/stats"
	"skerry/internal/link"
	"skerry/internal/record"
)

const (
	// falseAlarmRate is the probability that a correct direction fails. A lab has up to some thousands.
	falseAlarmRate = 1e-6
	// meanShare and varianceShare are further tolerances, relative to the set jitter. The emulator keeps packets in
	// order and delays above 0, which moves the mean by up to 2 % of the jitter and its variance by up to 10 %.
	meanShare     = 0.02
	varianceShare = 0.1
	// independent is the time, in units of the jitter, after which two values of the emulator's jitter are independent.
	independent = 16
	// minBlocks and minValues are the least data for a judgement.
	minBlocks = 10
	minValues = 20
)

// jitter sums the spread of one direction's delays, in blocks long enough to be independent of each other. For bursts
// of packets, the blocks show how few independent values exist. Seconds with a change, and those after, are excluded:
// packets in flight keep their old delay, and later packets wait for them.
type jitter struct {
	block  sums
	length time.Duration // of block
	quiet  bool          // the second before had no change

	all      sums
	spread   scatter // of the mean
	excess   scatter // of the squares less those that were set
	blocks   float64
	kurtosis float64
	late     time.Duration
}

// sums are over packets, in ms and ms², with the number of independent values possible in their time.
type sums struct{ packets, spread, squares, set, values float64 }

// scatter sums a quantity y over blocks of p packets, for the standard error of its mean over packets.
type scatter struct{ yy, yp, pp float64 }

func (c *scatter) add(y, p float64) {
	c.yy += y * y
	c.yp += y * p
	c.pp += p * p
}

// standardError is the standard error of the mean over all packets, from the scatter of the blocks around it.
func (c scatter) standardError(mean, packets, blocks float64) float64 {
	squares := c.yy - 2*mean*c.yp + mean*mean*c.pp
	return math.Sqrt(max(0, squares)*blocks/(blocks-1)) / packets
}

// effectiveBlocks is the number of blocks of equal size with the same scatter (Kish, "Survey Sampling", 1965).
func (c scatter) effectiveBlocks(packets float64) float64 { return packets * packets / c.pp }

func (j *jitter) add(s Second) {
	a := s.Counters.Account
	quiet := a.Changes == 0
	usable := quiet && j.quiet && a.SetSquares > 0 && s.Set.Jitter > 0
	j.quiet = quiet
	if !usable {
		if !quiet {
			j.block, j.length = sums{}, 0
		}
		return
	}
	b := &j.block
	b.packets += float64(a.Packets)
	b.spread += ms(a.Spread)
	b.squares += a.Squares / 1e6
	b.set += a.SetSquares / 1e6
	j.length += s.Length
	j.kurtosis = max(j.kurtosis, distributionKurtosis(s.Set.Distribution))
	j.late = max(j.late, s.Counters.Late.P99)
	alike := independent * s.Set.Jitter
	b.values += min(float64(a.Packets), s.Length.Seconds()/alike.Seconds())
	if j.length+time.Second/2 < max(time.Second, alike) {
		return
	}
	j.spread.add(b.spread, b.packets)
	j.excess.add(b.squares-b.set, b.packets)
	j.all.packets += b.packets
	j.all.spread += b.spread
	j.all.squares += b.squares
	j.all.set += b.set
	j.all.values += b.values
	j.blocks++
	j.block, j.length = sums{}, 0
}

// result compares mean and standard deviation with the setting; nil without enough data.
func (j *jitter) result(w Direction) *record.Jitter {
	if j.blocks < minBlocks || j.all.values < minValues {
		return nil
	}
	n := j.all.packets
	mean, set, excess := j.all.spread/n, j.all.set/n, (j.all.squares-j.all.set)/n
	late := ms(j.late)
	// Blocks may miss rare large values of the distribution. The distribution does not cover bursts,
	// which give fewer independent values than their time could have.
	meanError := max(j.spread.standardError(mean, n, j.blocks), math.Sqrt(set/j.all.values))
	values := min(j.all.values, set/(meanError*meanError))
	varianceError := max(j.excess.standardError(excess, n, j.blocks), set*math.Sqrt((j.kurtosis-1)/values))
	errors := stats.StudentQuantile(1-falseAlarmRate/2, max(1, j.spread.effectiveBlocks(n)-1))
	slack := errors*varianceError + varianceShare*set + late*late
	return &record.Jitter{
		Link: w.Link, From: w.From, To: w.To,
		MeanMS: mean, MeanLimitMS: errors*meanError + meanShare*math.Sqrt(set) + late,
		SDMS: math.Sqrt(max(0, excess+set-mean*mean)), SetSDMS: math.Sqrt(set),
		LeastSDMS: math.Sqrt(max(0, set-slack)), MostSDMS: math.Sqrt(set + slack),
	}
}

// jitterDeviation is the deviation of mean or standard deviation from the setting, in units of their limits.
func jitterDeviation(j record.Jitter) float64 {
	far := math.Abs(j.MeanMS) / j.MeanLimitMS
	if j.SDMS < j.SetSDMS {
		return max(far, (j.SetSDMS-j.SDMS)/(j.SetSDMS-j.LeastSDMS))
	}
	return max(far, (j.SDMS-j.SetSDMS)/(j.MostSDMS-j.SetSDMS))
}

// JitterExceeded reports whether mean or standard deviation are beyond their limits.
func JitterExceeded(j record.Jitter) bool { return jitterDeviation(j) > 1 }

// distributionKurtosis is the mean of x⁴ divided by the square of the mean of x².
func distributionKurtosis(d link.Distribution) float64 {
	if k := kurtoses[d]; k != nil {
		return k()
	}
	return kurtoses[link.Normal]()
}

var kurtoses = map[link.Distribution]func() float64{
	link.Normal: kurtosisOf(link.Normal), link.Uniform: kurtosisOf(link.Uniform),
	link.Pareto: kurtosisOf(link.Pareto), link.ParetoNormal: kurtosisOf(link.ParetoNormal),
}

func kurtosisOf(d link.Distribution) func() float64 {
	return sync.OnceValue(func() float64 {
		const values = 1024
		var squares, fourths float64
		for _, x := range d.Table(values) {
			squares += x * x
			fourths += x * x * x * x
		}
		return fourths * values / (squares * squares)
	})
}
