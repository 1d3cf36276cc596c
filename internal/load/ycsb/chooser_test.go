package ycsb

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat/distuv"
)

// parse returns a workload or fails the test.
func parse(t testing.TB, p Properties) Workload {
	t.Helper()
	w, _, err := Parse(Properties{"recordcount": "1000"}.Merge(p))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestDistributions compares draws with their probabilities by Pearson's chi-square. The fixed seed
// makes the result deterministic.
func TestDistributions(t *testing.T) {
	const records, draws = 1000, 400_000
	uniform := func(int64) float64 { return 1.0 / records }
	trueZipf := zipfProbabilities(newZipfian(records))
	for _, c := range []struct {
		p           Properties
		probability func(n int64) float64
	}{
		{Properties{"requestdistribution": "uniform"}, uniform},
		{Properties{"requestdistribution": "sequential"}, uniform},
		{Properties{"requestdistribution": "zipfian-true"}, func(n int64) float64 { return trueZipf[n] }},
		{Properties{"requestdistribution": "zipfian"}, scrambledProbabilities(records, records+1)},
		{Properties{"requestdistribution": "latest"}, latestProbabilities(records - 1)},
		{Properties{"requestdistribution": "hotspot"}, func(n int64) float64 {
			if n < 200 {
				return 0.8 / 200
			}
			return 0.2 / 800
		}},
		{Properties{"requestdistribution": "hotspot", "hotspotdatafraction": "0", "hotspotopnfraction": "0.5"}, uniform},
		{Properties{"requestdistribution": "hotspot", "hotspotdatafraction": "1", "hotspotopnfraction": "0.5"}, uniform},
		{Properties{"requestdistribution": "exponential"}, exponentialProbabilities(records, 95, 0.8571428571)},
	} {
		t.Run(fmt.Sprint(c.p), func(t *testing.T) {
			w := parse(t, c.p)
			g := NewSource(w, 42).NewGenerator()
			got := make(map[int64]int)
			for n := range uint64(draws) {
				r := NewRand(7, n)
				got[g.keys.draw(&r)]++
			}
			for n := range got {
				if n < 0 || n >= records {
					t.Fatalf("drew record %d of %d", n, records)
				}
			}
			chiSquare(t, got, draws, records, c.probability)
		})
	}
}

// chiSquare fails the test if such a bad fit has a probability below 10^-5. Records are pooled
// until each cell expects 10 draws.
func chiSquare(t *testing.T, got map[int64]int, draws, records int64, probability func(int64) float64) {
	t.Helper()
	var statistic, expected, total float64
	var observed, cells int
	pool := func() {
		if expected > 0 {
			d := float64(observed) - expected
			statistic += d * d / expected
			cells++
		} else if observed > 0 {
			t.Fatalf("%d draws of impossible values", observed)
		}
		expected, observed = 0, 0
	}
	for n := range records {
		p := probability(n)
		total += p
		expected += p * float64(draws)
		observed += got[n]
		if expected >= 10 {
			pool()
		}
	}
	pool()
	if math.Abs(total-1) > 1e-6 {
		t.Fatalf("error in the test: the probabilities sum up to %v", total)
	}
	if p := (distuv.ChiSquared{K: float64(cells - 1)}).Survival(statistic); p < 1e-5 {
		t.Errorf("chi-square %.0f in %d cells: p = %.2g", statistic, cells, p)
	}
}

// zipfProbabilities inverts the generator's formula: rank k >= 2 is drawn for u between
// ((k/n)^(1/alpha) - 1 + eta) / eta and the same of k+1.
func zipfProbabilities(z zipf) []float64 {
	p := make([]float64, z.items)
	at := func(k int64) float64 {
		u := (math.Pow(float64(k)/float64(z.items), 1/z.alpha) - 1 + z.eta) / z.eta
		return min(1, max(u, z.second/z.zeta))
	}
	p[0] = 1 / z.zeta
	p[1] = (z.second - 1) / z.zeta
	// The formula also draws ranks 0 and 1 from larger u.
	p[0] += max(0, at(1)-z.second/z.zeta)
	p[1] += max(0, at(2)-max(at(1), z.second/z.zeta))
	for k := int64(2); k < z.items; k++ {
		p[k] = at(k+1) - at(k)
	}
	return p
}

// scrambledProbabilities sums the ranks of each item: a million one by one, the rest in evenly
// spread strides, since the hash does not distinguish neighbours.
func scrambledProbabilities(records, items int64) func(int64) float64 {
	s := NewScrambledZipf(items)
	z := s.zipf
	at := func(k float64) float64 {
		u := (math.Pow(k/float64(z.items), 1/z.alpha) - 1 + z.eta) / z.eta
		return min(1, max(u, z.second/z.zeta))
	}
	p := make([]float64, items)
	p[s.Item(0)] += 1/z.zeta + max(0, at(1)-z.second/z.zeta)
	p[s.Item(1)] += (z.second-1)/z.zeta + max(0, at(2)-max(at(1), z.second/z.zeta))
	const head = 1 << 20
	for k := int64(2); k < head; k++ {
		p[s.Item(k)] += at(float64(k+1)) - at(float64(k))
	}
	rest := (1 - at(head)) / float64(items)
	kept := 0.0
	for n := range records {
		p[n] += rest
		kept += p[n]
	}
	return func(n int64) float64 { return p[n] / kept } // missing records are drawn again
}

func latestProbabilities(last int64) func(int64) float64 {
	p := zipfProbabilities(newZipfian(last))
	return func(n int64) float64 {
		if rank := last - n; rank >= 0 && rank < last {
			return p[rank]
		}
		return 0
	}
}

func exponentialProbabilities(records int64, percentile, fraction float64) func(int64) float64 {
	gamma := -math.Log(1-percentile/100) / (float64(records) * fraction)
	inside := 1 - math.Exp(-gamma*float64(records))
	return func(n int64) float64 {
		age := float64(records - 1 - n)
		return (math.Exp(-gamma*age) - math.Exp(-gamma*(age+1))) / inside
	}
}

func TestSequentialIsSharedAndWraps(t *testing.T) {
	s := NewSource(parse(t, Properties{"requestdistribution": "sequential", "recordcount": "10", "insertstart": "4"}), 1)
	a, b := s.NewGenerator(), s.NewGenerator()
	var got []int64
	for i := range uint64(8) {
		g := a
		if i%2 == 1 {
			g = b
		}
		r := NewRand(1, i)
		got = append(got, g.keys.draw(&r))
	}
	if want := []int64{4, 5, 6, 7, 8, 9, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("drew %v, want %v", got, want)
	}
}

// The items of the scrambled zipfian include future inserts, so that the hash of a rank does not
// move while the table grows. Missing records are drawn again.
func TestScrambledItems(t *testing.T) {
	for _, c := range []struct {
		p    Properties
		want int64
	}{
		{Properties{}, 1001},
		{Properties{"insertproportion": "0.05", "operationcount": "1000"}, 1101},
		{Properties{"insertproportion": "0.05", "operationcount": "1000", "recordcount": "500", "insertstart": "100"}, 501},
		{Properties{"insertproportion": "0.05", "operationcount": "0"}, 1001},
		{Properties{"insertproportion": "0.05"}, 1101}, // YCSB refuses it
	} {
		w := parse(t, c.p)
		if got := w.scrambledItems(); got != c.want {
			t.Errorf("%v: %d items, want %d", c.p, got, c.want)
		}
	}
}

func TestZipfianTrue(t *testing.T) {
	p := zipfProbabilities(newZipfian(1000))
	worst := 0.0
	for k, got := range p {
		want := math.Pow(float64(k+1), -zipfTheta) / zeta(1000)
		worst = max(worst, math.Abs(got-want))
	}
	if worst > 0.02 {
		t.Errorf("error of a rank's probability: %v", worst)
	}
}

// A workload on a part of the table draws no record of another part, whose writes an audit would
// report as lost.
func TestTableParts(t *testing.T) {
	for _, d := range []string{"zipfian", "zipfian-true", "uniform", "hotspot", "sequential"} {
		for start, count := range map[int64]int64{0: 50, 50: 50} {
			w := parse(t, Properties{"recordcount": "100", "insertstart": fmt.Sprint(start), "insertcount": fmt.Sprint(count),
				"requestdistribution": d})
			g := NewSource(w, 1).NewGenerator()
			for i := range uint64(20_000) {
				if n := g.Next(i).Number; n < start || n >= start+count {
					t.Fatalf("%s: record %d of a part from %d to %d", d, n, start, start+count-1)
				}
			}
		}
	}
}

func TestZeta(t *testing.T) {
	for _, n := range []int64{1, 2, 999, 1000, 1001, 1500, 100_000} {
		direct := 0.0
		for i := n; i >= 1; i-- { // the small terms first, for exactness
			direct += math.Pow(float64(i), -zipfTheta)
		}
		if got := zeta(n); math.Abs(got-direct) > 1e-11 {
			t.Errorf("zeta(%d) = %.15g, want %.15g", n, got, direct)
		}
	}
	// The constant in YCSB's source, summed term by term over 10^10.
	if got := zeta(10_000_000_000); math.Abs(got-scrambledZeta) > 1e-6 {
		t.Errorf("zeta(10^10) = %.14g, want %.14g", got, scrambledZeta)
	}
}

// growAsYCSB is ZipfianGenerator.nextLong of YCSB 0.17.0 for a generator created for `first` items
// that now has `items`, with all terms.
func growAsYCSB(first, items int64, u float64) int64 {
	zetan := 0.0
	for i := int64(1); i <= items; i++ {
		zetan += 1 / math.Pow(float64(i), zipfTheta)
	}
	zeta2 := 1 + math.Pow(0.5, zipfTheta)
	eta := (1 - math.Pow(2/float64(first), 1-zipfTheta)) / (1 - zeta2/zetan)
	switch uz := u * zetan; {
	case uz < 1:
		return 0
	case uz < zeta2:
		return 1
	}
	return int64(float64(items) * math.Pow(eta*u-eta+1, 1/(1-zipfTheta)))
}

// TestZipfGrowsAsInYCSB compares the ranks of a growing zipfian with YCSB's formula, at 1.5, 2 and
// 51 times the first size.
func TestZipfGrowsAsInYCSB(t *testing.T) {
	const first = 999
	for _, items := range []int64{first, 1499, 1999, 50_999} {
		for _, step := range []int64{1, 7, 10_000} {
			z := newZipfian(first)
			for z.items < items {
				z.grow(min(items, z.items+step))
			}
			for u := 0.0; u < 1; u += 1.0 / 512 {
				if got, want := z.rank(u), growAsYCSB(first, items, u); got != want {
					t.Fatalf("%d items by steps of %d: rank %d for u = %v, want %d", items, step, got, u, want)
				}
			}
		}
	}
}

func TestZipfStaysInRange(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 10, 1000} {
		z := newZipfian(n)
		for _, u := range []float64{0, 0.1, 0.5, 0.9, 0.999999, 1 - 0x1p-53} {
			if r := z.rank(u); r < 0 || r >= n {
				t.Errorf("rank %d of %d items for u = %v", r, n, u)
			}
		}
	}
}

func TestScrambledRankToItem(t *testing.T) {
	s := NewScrambledZipf(1000)
	var got []int64
	for rank := range int64(5) {
		got = append(got, s.Item(rank))
	}
	if d := cmp.Diff([]int64{211, 620, 393, 802, 769}, got); d != "" {
		t.Error(d)
	}
}

func TestHeadShare(t *testing.T) {
	const draws = 1_000_000
	share := func(draw func(u float64) int64, item int64) float64 {
		r, hits := NewRand(1, 1), 0
		for range draws {
			if draw(r.Float64()) == item {
				hits++
			}
		}
		return float64(hits) / draws
	}
	s := NewScrambledZipf(1000)
	if got := share(s.Draw, 211); got < 0.038 || got > 0.039 {
		t.Errorf("scrambled zipfian: the hottest of 1000 gets %.2f %%, want 3.8 to 3.9 %%", 100*got)
	}
	z := newZipfian(1000)
	if got := share(z.rank, 0); got < 0.129 || got > 0.131 {
		t.Errorf("true zipfian: the hottest of 1000 gets %.2f %%, want 13.0 %%", 100*got)
	}
}
