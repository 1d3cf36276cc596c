// Package heat counts a server's operations per second: of all, and by directory, with all
// that is below it.
//
// Counts decay exponentially, as the popularity counters of Ceph's metadata servers do
// (Weil, Pollack, Brandt and Miller, "Dynamic Metadata Management for Petabyte-scale File
// Systems", SC'04). A steady r operations/s add up to r·h/ln 2 with a half-life h, so a
// count times ln 2/h is a rate. Counts are not gone through to decay: what is added is
// weighted by 2^(t/h) instead (forward decay: Cormode, Shkapenyuk, Srivastava and Xu,
// ICDE 2009).
//
// Memory is bounded: each of the first Levels levels of directories has a summary of the
// hottest (summary). One operation of Every is looked at, for Every of them; nobody waits
// for a lock.
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
	// HalfLife is that of counts.
	HalfLife = 10 * time.Second
	// Every is how many operations there are for one that is looked at.
	SampleEvery = 32
	// Levels is how many levels of directories are counted: a subtree's own directory, and
	// seven below that or below the root.
	Levels = 8
	// shown is the least share of all operations that a directory in a Load has.
	minReportedShare = 0.01
)

// Directory is the load of a directory with all below it.
type Directory struct {
	Path string  `json:"path"`      // in the server's own tree
	Rate float64 `json:"ops_per_s"` // at least so much
}

// Load is a server's load.
type Load struct {
	Rate     float64 `json:"ops_per_s"`
	HalfLife float64 `json:"half_life_s"`
	// Directories have at least one operation of a hundred; the hottest is first.
	Directories []Directory `json:"directories,omitempty"`
}

// Meter counts.
type Meter struct {
	every uint32
	now   func() time.Time
	// owed are operations that were not looked at since another one was just then.
	skipped atomic.Uint64

	mu     sync.Mutex
	start  time.Time // what is added then has the weight 1
	all    float64
	levels [Levels]summary
}

// NewMeter is a meter that looks at one operation of Every, and has counted none.
func NewMeter() *Meter { return NewExactMeter(time.Now, SampleEvery) }

// NewExactMeter is a meter with a clock of its own that looks at one operation of every.
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
	if !m.mu.TryLock() { // who is there takes this one along, or the next
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

// maxScale is the weight at which the counting begins anew at 1.
const maxScale = 1 << 40

// currentWeight is the weight of what is added at this moment; mu is held.
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

// Load is what was counted, as it has decayed by this moment.
func (m *Meter) Load() Load {
	m.mu.Lock()
	defer m.mu.Unlock()
	perSecond := math.Ln2 / HalfLife.Seconds() / m.currentWeight()
	l := Load{Rate: m.all * perSecond, HalfLife: HalfLife.Seconds()}
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

func (l *Load) sortDirectories() {
	slices.SortFunc(l.Directories, func(a, b Directory) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.Path, b.Path))
	})
}

// SumLoads is the load of a server whose replicas have these.
func SumLoads(loads []Load) Load {
	var sum Load
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

// chargedDirectory is the one that a command is about: a listing's own, else that of the entry.
// It is "" where the command is no client's: a transaction's step, a copy that comes in.
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

// subtreeBase is the directory of the subtree that a path is in, "" for a path that is in none.
func subtreeBase(path string) string {
	rest, ok := strings.CutPrefix(path, metadata.Subtrees+"/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return path[:len(metadata.Subtrees)+1+len(name)]
}

// summarySize is how many directories a summary has.
const summarySize = 128

// summary are the hottest directories of a level, by Space-Saving (Metwally, Agrawal and
// El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT
// 2005), a level at a time as Mitzenmacher, Steinke and Thaler have it ("Hierarchical
// Heavy Hitters with the Space Saving Algorithm", ALENEX 2012): a new one takes the place
// of the least, whose weight it might have had. One that has more than 1/kept of the whole
// weight is there.
type summary struct {
	hottest []counter
	at      map[string]int // of hottest, by path
}

type counter struct {
	path     string
	weight   float64 // at most
	maxError float64 // of the weight: that of the one before, which may not be this one's
}

func (s *summary) add(path string, weight float64) {
	if i, ok := s.at[path]; ok {
		s.hottest[i].weight += weight
		return
	}
	path = strings.Clone(path) // it may be a part of a long request
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
