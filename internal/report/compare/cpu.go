package compare

import (
	"slices"

	"skerry/internal/evidence/stats"
	"skerry/internal/record"
	"skerry/internal/record/metric"
	"skerry/internal/topology"
)

// CPU is the CPU usage of the data nodes by second: in percent of the quota if every node has one,
// else in cores.
type CPU struct {
	Unit string  `json:"unit"` // "%" or "cores"
	A    CPUSide `json:"a"`
	B    CPUSide `json:"b"`
	// GOfSeconds is the uncorrected effect size over seconds, as the original papers compute it.
	// Seconds are not independent, so it has no interval and no test.
	GOfSeconds *float64 `json:"g_of_seconds,omitempty"`
}

// CPUSide is the distribution of one side.
type CPUSide struct {
	// Mean, SD and Variance are over all seconds of all data nodes.
	Mean     float64 `json:"mean"`
	SD       float64 `json:"sd"`
	Variance float64 `json:"variance"`
	// Curve is the mean over nodes and repetitions by second. CDF is the share of seconds (y) with
	// at most this usage (x).
	Curve []Point `json:"curve"`
	CDF   []Point `json:"cdf"`

	seconds int
}

// Point is a point of a curve.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

const quantiles = 100

// compareCPU returns nil if either side recorded no data nodes.
func compareCPU(a, b Side) *CPU {
	c := CPU{Unit: string(metric.Cores)}
	share := a.cpuUnit() == metric.Share && b.cpuUnit() == metric.Share
	if share {
		c.Unit = "%"
	}
	c.A, c.B = a.cpu(share), b.cpu(share)
	if c.A.seconds == 0 || c.B.seconds == 0 {
		return nil
	}
	e := stats.ComputeEffect(stats.Estimate{Mean: c.A.Mean, SD: c.A.SD}, stats.Estimate{Mean: c.B.Mean, SD: c.B.SD})
	if e.OK {
		c.GOfSeconds = pointer(e.Uncorrected)
	}
	return &c
}

func (s Side) cpu(share bool) CPUSide {
	var all []float64
	sums, counts := map[int64]float64{}, map[int64]float64{}
	for _, t := range s.trials {
		for _, row := range s.cpuSeconds(t.ID, share) {
			all = append(all, row.use)
			sums[row.t] += row.use
			counts[row.t]++
		}
	}
	e := stats.EstimateMean(all)
	out := CPUSide{Mean: e.Mean, SD: e.SD, Variance: e.SD * e.SD, seconds: len(all)}
	for t, sum := range sums {
		out.Curve = append(out.Curve, Point{float64(t), sum / counts[t]})
	}
	slices.SortFunc(out.Curve, func(a, b Point) int { return int(a.X - b.X) })
	slices.Sort(all)
	for i := range quantiles {
		if len(all) > 0 {
			q := float64(i+1) / quantiles
			out.CDF = append(out.CDF, Point{all[min(len(all)-1, int(q*float64(len(all))))], q})
		}
	}
	return out
}

type second struct {
	t   int64
	use float64
}

func (s Side) cpuSeconds(id int, share bool) (rows []second) {
	recorded, err := s.dir.Nodes(id)
	if err != nil {
		return nil
	}
	quota := s.quotas(id)
	for _, r := range recorded {
		q, data := quota[r.Node]
		if r.T < 0 || !data {
			continue
		}
		use := r.CPU
		if share {
			use = 100 * use / q
		}
		rows = append(rows, second{r.T, use})
	}
	return rows
}

// quotas returns the cores of the data nodes of a trial, 0 for unlimited.
func (s Side) quotas(id int) map[string]float64 {
	t, err := s.dir.Topology(id)
	if err != nil || t == nil {
		return nil
	}
	out := map[string]float64{}
	for _, n := range t.Nodes {
		if n.Role == topology.Data {
			out[n.Name] = n.CPU
		}
	}
	return out
}

// cpuUnit returns Share if every data node has a quota, else Cores.
func (s Side) cpuUnit() metric.Unit {
	for _, t := range s.trials {
		for _, q := range s.quotas(t.ID) {
			if q <= 0 {
				return metric.Cores
			}
		}
	}
	return metric.Share
}

func (s Side) meanCPU(t record.Trial) (float64, bool) {
	share := s.cpuUnit() == metric.Share
	rows := s.cpuSeconds(t.ID, share)
	if len(rows) == 0 {
		return 0, false
	}
	sum := 0.0
	for _, r := range rows {
		sum += r.use
	}
	if share {
		sum /= 100
	}
	return sum / float64(len(rows)), true
}
