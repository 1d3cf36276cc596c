package routebench

import (
	"math"
	"testing"
	"time"

	"skerry/internal/lab"
	"skerry/internal/link"
)

func TestBest(t *testing.T) {
	const ms = time.Millisecond
	wire := func(a, b string, rtt time.Duration, down bool) lab.Link {
		q := link.Quality{Latency: rtt / 2, Down: down}
		return lab.Link{ID: a + b, A: a, B: b, AB: q, BA: q}
	}
	nodes := []string{"a", "b", "c", "d"}
	links := []lab.Link{wire("a", "c", 210*ms, false), wire("a", "c", 140*ms, false), wire("a", "b", 40*ms, false), wire("b", "c", 50*ms, false), wire("c", "d", 1*ms, true)}
	way := best(nodes, links)
	if way[0][2] != 90*ms || way[2][0] != 90*ms || way[0][0] != 0 || way[0][3] != math.MaxInt64 {
		t.Errorf("best ways: %v", way)
	}
	links[2].AB.Down = true
	if way := best(nodes, links); way[0][2] != 140*ms || way[0][1] != 190*ms {
		t.Errorf("best ways without a~b: %v", way)
	}
}

func TestSummarise(t *testing.T) {
	r := Overlay{Failures: []Failure{
		{Healed: true, HealMS: 300, Stretch: 1}, {Healed: true, HealMS: 100, Stretch: 1.2}, {Healed: true, HealMS: 200, Stretch: 1}, {Stretch: 1},
	}}
	r.summarise()
	if r.MedianMS != 200 || r.P95MS != 300 || r.Unhealed != 1 || r.Stretch != 1.05 {
		t.Errorf("summary: %+v", r)
	}
}

func TestMoved(t *testing.T) {
	median, most, never := moved([]Move{{true, 700}, {false, 0}, {true, 500}, {true, 600}})
	if median != 600 || most != 700 || never != 1 {
		t.Errorf("median %g, most %g, never %d", median, most, never)
	}
	if median, most, never := moved(nil); median != 0 || most != 0 || never != 0 {
		t.Errorf("of none: median %g, most %g, never %d", median, most, never)
	}
}
