package ycsb

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestZeta(t *testing.T) {
	for _, n := range []int64{1, 2, 999, 1000, 1001, 1500, 100_000} {
		direct := 0.0
		for i := n; i >= 1; i-- { // the small ones first: exact
			direct += math.Pow(float64(i), -zipfTheta)
		}
		if got := zeta(n); math.Abs(got-direct) > 1e-11 {
			t.Errorf("zeta(%d) = %.15g, want %.15g", n, got, direct)
		}
	}
	// The constant of YCSB's source, summed up term by term over 10^10.
	if got := zeta(10_000_000_000); math.Abs(got-scrambledZeta) > 1e-6 {
		t.Errorf("zeta(10^10) = %.14g, want %.14g", got, scrambledZeta)
	}
}

// growAsYCSB is ZipfianGenerator.nextLong of YCSB 0.17.0 for a generator made for `first` items that now has
// `items`: all terms one by one.
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

// TestZipfGrowsAsYCSBs holds ranks of a growing zipfian against YCSB's formula: 1.5, 2 and 51 times the first size.
func TestZipfGrowsAsYCSBs(t *testing.T) {
	const first = 999
	for _, items := range []int64{first, 1499, 1999, 50_999} {
		for _, step := range []int64{1, 7, 10_000} {
			z := NewZipf(first)
			for z.items < items {
				z.grow(min(items, z.items+step))
			}
			for u := 0.0; u < 1; u += 1.0 / 512 {
				if got, want := z.Rank(u), growAsYCSB(first, items, u); got != want {
					t.Fatalf("%d items by steps of %d: rank %d for u = %v, want %d", items, step, got, u, want)
				}
			}
		}
	}
}

func TestZipfStaysInside(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 10, 1000} {
		z := NewZipf(n)
		for _, u := range []float64{0, 0.1, 0.5, 0.9, 0.999999, 1 - 0x1p-53} {
			if r := z.Rank(u); r < 0 || r >= n {
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
	z := NewZipf(1000)
	if got := share(z.Rank, 0); got < 0.129 || got > 0.131 {
		t.Errorf("true zipfian: the hottest of 1000 gets %.2f %%, want 13.0 %%", 100*got)
	}
}
