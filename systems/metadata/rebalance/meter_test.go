package rebalance_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/metadata"
	"skerry/systems/metadata/rebalance"
)

// clock is a manual clock.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func commands(t *testing.T, lines ...string) []metadata.Command {
	t.Helper()
	list := make([]metadata.Command, len(lines))
	for i, line := range lines {
		c, err := metadata.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = c
	}
	return list
}

func near(got, want, part float64) bool { return math.Abs(got-want) <= part*want }

// TestRate counts a steady load and its end, for long enough that weights are rescaled.
func TestRate(t *testing.T) {
	c := &clock{at: time.Unix(0, 0)}
	m := rebalance.NewExactMeter(c.now, 1)
	ls := commands(t, "ls /a/b")
	for range 100 * 600 { // 10 min of 100/s
		m.Count(ls)
		c.at = c.at.Add(10 * time.Millisecond)
	}
	l := m.Load()
	if !near(l.Rate, 100, 0.01) || l.HalfLife != rebalance.HalfLife.Seconds() {
		t.Errorf("%+v", l)
	}
	for _, d := range l.Directories {
		if !near(d.Rate, 100, 0.01) {
			t.Errorf("%+v", d)
		}
	}
	c.at = c.at.Add(rebalance.HalfLife)
	if half := m.Load().Rate; !near(half, l.Rate/2, 1e-6) {
		t.Errorf("after one half-life: %v of %v", half, l.Rate)
	}
	c.at = c.at.Add(100 * rebalance.HalfLife)
	m.Count(ls)
	if l := m.Load(); !near(l.Rate, math.Ln2/rebalance.HalfLife.Seconds(), 0.01) {
		t.Errorf("one operation a long time later: %+v", l)
	}
}

// TestDirectories tests which directory each command counts for.
func TestDirectories(t *testing.T) {
	const sub = "/.subtrees/0123.4"
	for line, want := range map[string][]string{
		"ls /":                     nil,
		"mkdir /a":                 nil,
		"stat /a/b":                {"/a"},
		"ls /a/b":                  {"/a", "/a/b"},
		"find /a":                  {"/a"},
		"write /a/b/c/f x":         {"/a", "/a/b", "/a/b/c"},
		"stat " + sub:              {sub},
		"ls " + sub:                {sub},
		"mkdir " + sub + "/x":      {sub},
		"ls " + sub + "/x/y":       {sub, sub + "/x", sub + "/x/y"},
		"ls /1/2/3/4/5/6/7/8/9/10": {"/1", "/1/2", "/1/2/3", "/1/2/3/4", "/1/2/3/4/5", "/1/2/3/4/5/6", "/1/2/3/4/5/6/7"},
	} {
		m := rebalance.NewExactMeter((&clock{}).now, 1)
		m.Count(commands(t, line))
		l := m.Load()
		var got []string
		for _, d := range l.Directories {
			got = append(got, d.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" || l.Rate == 0 {
			t.Errorf("%s, %v/s: %s", line, l.Rate, diff)
		}
	}
	m := rebalance.NewExactMeter((&clock{}).now, 1)
	m.Count(commands(t, "write /.incoming/x/f y", "ls /.subtrees"))
	m.Count([]metadata.Command{{Op: metadata.Transact, Path: "/a/b"}})
	if l := m.Load(); l.Rate != 0 {
		t.Errorf("requests between servers: %+v", l)
	}
}

// TestMeterMemoryBounded counts many more directories than the meter keeps. It finds the hot ones, overestimates
// none, and uses no more memory.
func TestMeterMemoryBounded(t *testing.T) {
	c := &clock{}
	m := rebalance.NewExactMeter(c.now, 1)
	hot := commands(t, "ls /hot/x")
	for i := range 20_000 {
		m.Count(commands(t, fmt.Sprintf("ls /cold%d/%d", i, i)))
		if i%4 == 0 {
			m.Count(hot)
		}
	}
	l := m.Load()
	all := l.Rate
	if len(l.Directories) != 2 || l.Directories[0].Path != "/hot" || l.Directories[1].Path != "/hot/x" {
		t.Fatalf("%+v", l.Directories)
	}
	for _, d := range l.Directories {
		if d.Rate > all/5*1.0001 || d.Rate < all/5*0.9 {
			t.Errorf("%s: %v of %v", d.Path, d.Rate, all)
		}
	}
}

// TestManyDirectories counts from many goroutines while others read. Operations skipped at a held lock are counted
// with later ones.
func TestManyDirectories(t *testing.T) {
	c := &clock{at: time.Unix(0, 0)}
	m := rebalance.NewExactMeter(c.now, 1)
	const each = 5000
	var all sync.WaitGroup
	for i := range 8 {
		list := commands(t, fmt.Sprintf("ls /%d/x", i))
		all.Go(func() {
			for n := range each {
				m.Count(list)
				if n%1000 == 0 {
					m.Load()
				}
			}
		})
	}
	all.Wait()
	m.Count(commands(t, "ls /"))
	if got := m.Load().Rate * rebalance.HalfLife.Seconds() / math.Ln2; math.Round(got) != 8*each+1 {
		t.Errorf("%v of %d", got, 8*each+1)
	}
}

// TestSampling counts one operation in many.
func TestSampling(t *testing.T) {
	c := &clock{at: time.Unix(0, 0)}
	m := rebalance.NewExactMeter(c.now, rebalance.SampleEvery)
	list := commands(t, "ls /a")
	const n = 200_000
	for range n {
		m.Count(list)
	}
	// 6,250 samples: 10 % is 7.9 standard deviations.
	if got := m.Load().Rate * rebalance.HalfLife.Seconds() / math.Ln2; !near(got, n, 0.1) {
		t.Errorf("%v of %d", got, n)
	}
}

func TestSum(t *testing.T) {
	a := rebalance.LoadReport{Rate: 10, HalfLife: 10, Directories: []rebalance.Directory{{Path: "/a", Rate: 8}, {Path: "/b", Rate: 2}}}
	b := rebalance.LoadReport{Rate: 20, HalfLife: 10, Directories: []rebalance.Directory{{Path: "/b", Rate: 20}}}
	want := rebalance.LoadReport{Rate: 30, HalfLife: 10, Directories: []rebalance.Directory{{Path: "/b", Rate: 22}, {Path: "/a", Rate: 8}}}
	if diff := cmp.Diff(want, rebalance.SumLoads([]rebalance.LoadReport{a, b})); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkCount(b *testing.B) {
	m := rebalance.NewMeter()
	var list [1024]metadata.Command
	for i := range list {
		list[i] = metadata.Command{Op: metadata.List, Path: "/" + strings.Repeat(fmt.Sprintf("d%d/", i), 6) + "x"}
	}
	b.RunParallel(func(p *testing.PB) {
		for i := 0; p.Next(); i++ {
			m.Count(list[i%1024 : i%1024+1])
		}
	})
}
