package rebalance

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"skerry/systems/metadata"
)

const (
	// HalfLife is the half-life of counts.
	HalfLife = 10 * time.Second
	// SampleEvery is the number of operations per sampled operation.
	SampleEvery = 32
	// Levels is the number of counted levels: a subtree's directory, and seven below it or below the root.
	Levels = 8
	// minReportedShare is the minimum share of the load of a directory in LoadReport.
	minReportedShare = 0.01
)

// Directory is the load of a directory with everything below it.
type Directory struct {
	Path string  `json:"path"`      // in the server's own tree
	Rate float64 `json:"ops_per_s"` // lower bound
}

// LoadReport is a server's load.
type LoadReport struct {
	Rate     float64 `json:"ops_per_s"`
	HalfLife float64 `json:"half_life_s"`
	// Directories have at least 1 % of the load; the hottest is first.
	Directories []Directory `json:"directories,omitempty"`
}

// Meter counts a server's operations per second: all of them, and for each directory with everything below it.
//
// Counts decay exponentially, like the popularity counters of Ceph's metadata servers (Weil, Pollack, Brandt and Miller,
// "Dynamic Metadata Management for Petabyte-scale File Systems", SC'04). A steady rate r sums to r·h/ln 2 for half-life
// h, so a count times ln 2/h is a rate. New counts are weighted by 2^(t/h) instead of decaying old ones (forward decay:
// Cormode, Shkapenyuk, Srivastava and Xu, ICDE 2009).
//
// Memory is bounded: each of the first Levels levels has a summary of its hottest directories. The meter samples one
// operation in SampleEvery, and no operation waits for a lock.
type Meter struct {
	every uint32
	now   func() time.Time
	// skipped counts sampled operations that found the lock held.
	skipped atomic.Uint64

	mu     sync.Mutex
	start  time.Time // time of weight 1
	all    float64
	levels [Levels]summary
}

// NewMeter returns a meter that samples one operation in SampleEvery.
func NewMeter() *Meter { return NewExactMeter(time.Now, SampleEvery) }

// NewExactMeter returns a meter with a given clock that samples one operation in every.
func NewExactMeter(now func() time.Time, every uint32) *Meter {
	return &Meter{every: every, now: now, start: now()}
}

// Count counts commands on the server's own tree.
func (m *Meter) Count(commands []metadata.Command) {
	for i := range commands {
		if m.every > 1 && rand.Uint32N(m.every) != 0 {
			continue
		}
		if dir := chargedDirectory(&commands[i]); dir != "" {
			m.add(dir)
		}
	}
}

func (m *Meter) add(dir string) {
	if !m.mu.TryLock() { // the next sample counts this one as well
		m.skipped.Add(1)
		return
	}
	defer m.mu.Unlock()
	weight := float64(m.every) * float64(1+m.skipped.Swap(0)) * m.currentWeight()
	m.all += weight
	end := len(subtreeBase(dir))
	for level := range m.levels {
		if end > 0 {
			m.levels[level].add(dir[:end], weight)
		}
		if end == len(dir) || dir == "/" {
			return
		}
		if next := strings.IndexByte(dir[end+1:], '/'); next >= 0 {
			end += 1 + next
		} else {
			end = len(dir)
		}
	}
}

// maxScale is the weight at which all counts are rescaled to weight 1.
const maxScale = 1 << 40

// currentWeight returns the weight of an operation now. The caller holds mu.
func (m *Meter) currentWeight() float64 {
	age := m.now().Sub(m.start)
	scale := math.Exp2(float64(age) / float64(HalfLife))
	if scale < maxScale {
		return scale
	}
	m.all /= scale
	for i := range m.levels {
		m.levels[i].divide(scale)
	}
	m.start = m.start.Add(age)
	return 1
}

func (m *Meter) Load() LoadReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	perSecond := math.Ln2 / HalfLife.Seconds() / m.currentWeight()
	l := LoadReport{Rate: m.all * perSecond, HalfLife: HalfLife.Seconds()}
	for _, s := range m.levels {
		for _, c := range s.hottest {
			if rate := (c.weight - c.maxError) * perSecond; rate >= minReportedShare*l.Rate && rate > 0 {
				l.Directories = append(l.Directories, Directory{c.path, rate})
			}
		}
	}
	l.sortDirectories()
	return l
}

func (l *LoadReport) sortDirectories() {
	slices.SortFunc(l.Directories, func(a, b Directory) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.Path, b.Path))
	})
}

func SumLoads(loads []LoadReport) LoadReport {
	var sum LoadReport
	rates := make(map[string]float64)
	for _, l := range loads {
		sum.Rate, sum.HalfLife = sum.Rate+l.Rate, l.HalfLife
		for _, d := range l.Directories {
			rates[d.Path] += d.Rate
		}
	}
	for path, rate := range rates {
		sum.Directories = append(sum.Directories, Directory{path, rate})
	}
	sum.sortDirectories()
	return sum
}

// chargedDirectory returns the directory that a command counts for: the listed directory, or the parent of the entry. It
// returns "" for commands among servers, which are not load from clients.
func chargedDirectory(c *metadata.Command) string {
	if c.Op.Internal() || metadata.Under(c.Path, metadata.Incoming) || c.Path == metadata.Subtrees {
		return ""
	}
	if c.Op == metadata.List || c.Op == metadata.Find || c.Path == subtreeBase(c.Path) {
		return c.Path
	}
	dir, _ := metadata.Split(c.Path)
	return dir
}

// subtreeBase returns the directory of the subtree that contains a path, "" if there is none.
func subtreeBase(path string) string {
	rest, ok := strings.CutPrefix(path, metadata.Subtrees+"/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return path[:len(metadata.Subtrees)+1+len(name)]
}

const summarySize = 128

// summary has the hottest directories of one level, by Space-Saving (Metwally, Agrawal and El Abbadi, "Efficient
// Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005), one summary per level (Mitzenmacher, Steinke
// and Thaler, "Hierarchical Heavy Hitters with the Space Saving Algorithm", ALENEX 2012). A new directory replaces the
// one with the least weight and inherits that weight as its maximum error. Every directory with more than 1/summarySize
// of the total weight is present.
type summary struct {
	hottest []counter
	at      map[string]int // index in hottest by path
}

type counter struct {
	path     string
	weight   float64 // upper bound
	maxError float64 // part of weight inherited from the replaced directory
}

func (s *summary) add(path string, weight float64) {
	if i, ok := s.at[path]; ok {
		s.hottest[i].weight += weight
		return
	}
	path = strings.Clone(path) // path may alias a long request
	if len(s.hottest) < summarySize {
		if s.at == nil {
			s.at = make(map[string]int, summarySize)
		}
		s.at[path] = len(s.hottest)
		s.hottest = append(s.hottest, counter{path: path, weight: weight})
		return
	}
	least := 0
	for i := range s.hottest {
		if s.hottest[i].weight < s.hottest[least].weight {
			least = i
		}
	}
	delete(s.at, s.hottest[least].path)
	s.at[path] = least
	doubt := s.hottest[least].weight
	s.hottest[least] = counter{path: path, weight: doubt + weight, maxError: doubt}
}

func (s *summary) divide(by float64) {
	for i := range s.hottest {
		s.hottest[i].weight /= by
		s.hottest[i].maxError /= by
	}
}
