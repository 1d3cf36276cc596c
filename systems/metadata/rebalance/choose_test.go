package rebalance

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// rates maps directories to operations/s.
type rates map[string]float64

func server(rate float64, directories rates, subtrees map[string]string) ServerLoad {
	s := ServerLoad{Load: LoadReport{Rate: rate}, Subtrees: subtrees}
	for _, path := range slices.Sorted(maps.Keys(directories)) {
		s.Load.Directories = append(s.Load.Directories, Directory{Path: path, Rate: directories[path]})
	}
	return s
}

// TestChoose lets one of three servers evaluate constant loads.
func TestChoose(t *testing.T) {
	idle := server(0, nil, nil)
	for name, test := range map[string]struct {
		self    string
		servers map[string]ServerLoad
		want    string // "PATH to SERVER"
	}{
		"the one that fits": {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 1500, "/b": 900, "/c": 600}, nil),
			"g2": idle, "g3": idle}, "/a to g2"},
		"the least loaded": {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 1500}, nil), "g2": server(500, nil, nil),
			"g3": server(400, nil, nil)}, "/a to g3"},
		"half of the difference": {"g1", map[string]ServerLoad{
			"g1": server(3000, rates{"/a": 2000, "/b": 1000}, nil), "g2": server(1500, nil, nil), "g3": server(1000, nil, nil)}, "/b to g3"},
		"even load": {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 1500}, nil),
			"g2": server(2800, nil, nil), "g3": server(2600, nil, nil)}, ""},
		"another has more load": {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 1500}, nil),
			"g2": server(9000, nil, nil), "g3": idle}, ""},
		"hardly any load":       {"g1", map[string]ServerLoad{"g1": server(30, rates{"/a": 15}, nil), "g2": idle, "g3": idle}, ""},
		"single server":         {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 1500}, nil)}, ""},
		"one with all the load": {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 3000}, nil), "g2": idle, "g3": idle}, ""},
		"nearly all":            {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 2900, "/b": 50}, nil), "g2": idle, "g3": idle}, ""},
		"a part of the load": {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 3000, "/a/x": 1400, "/a/y": 1600},
			nil), "g2": idle, "g3": idle}, "/a/y to g2"},
		"negligible load": {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 50, "/b": 40}, nil), "g2": idle, "g3": idle}, ""},
		"equal directories": {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 1400, "/b/c/d": 1500}, nil),
			"g2": idle, "g3": idle}, "/a to g2"},
		"not the root": {"g1", map[string]ServerLoad{"g1": server(3000, nil, nil), "g2": idle, "g3": idle}, ""},
		"a directory that left": {"g1", map[string]ServerLoad{"g1": server(3000, rates{"/a": 1500, "/a/b": 1500},
			map[string]string{"/a": "g2:/.subtrees/1"}), "g2": idle, "g3": idle}, ""},
		"a whole subtree": {"g2", map[string]ServerLoad{
			"g1": server(0, nil, map[string]string{"/home": "g2:/.subtrees/1.7"}),
			"g2": server(3000, rates{"/.subtrees/1.7": 1500, "/.subtrees/1.7/ann": 1500}, nil), "g3": idle}, "/home to g1"},
		"part of an arrived one": {"g2", map[string]ServerLoad{
			"g1": server(0, nil, map[string]string{"/home": "g3:/.subtrees/2"}),
			"g3": server(100, nil, map[string]string{"/.subtrees/2/ann": "g2:/.subtrees/1"}),
			"g2": server(3000, rates{"/.subtrees/1": 3000, "/.subtrees/1/doc": 1500}, nil)}, "/home/ann/doc to g1"},
		"an unknown path": {"g2", map[string]ServerLoad{"g1": idle,
			"g2": server(3000, rates{"/.subtrees/1/x": 1500, "/x": 1500}, nil)}, ""},
		"a subtree being moved": {"g2", map[string]ServerLoad{"g1": server(0, nil,
			map[string]string{"/.incoming/1/x": "g2:/.subtrees/1"}), "g2": server(3000, rates{"/.subtrees/1": 1500}, nil)}, ""},
		"a circle": {"g2", map[string]ServerLoad{"g1": server(0, nil, map[string]string{"/.subtrees/2/x": "g2:/.subtrees/1"}),
			"g2": server(3000, rates{"/.subtrees/1": 1500}, map[string]string{"/.subtrees/1/y": "g1:/.subtrees/2"})}, ""},
	} {
		p := Policy{}.WithDefaults()
		v := View{Self: test.self, Root: "g1", Servers: test.servers}
		h, now := &history{}, time.Unix(0, 0)
		var m Move
		why := "never"
		for round := range p.Rounds {
			if m, why = p.choose(now, h, v); why == "" && round < p.Rounds-1 {
				t.Errorf("%s: in round %d", name, round)
			}
			now = now.Add(p.Stay / 2) // subtrees present from the start may move
		}
		got := ""
		if why == "" {
			got = m.Path + " to " + m.To
		}
		if got != test.want {
			t.Errorf("%s: %q, %s, want %q", name, got, why, test.want)
		}
	}
}

// TestHysteresis tests varying loads and rounds after a move.
func TestHysteresis(t *testing.T) {
	p := Policy{}.WithDefaults()
	now := time.Unix(0, 0)
	hot := View{Self: "g1", Root: "g1", Servers: map[string]ServerLoad{"g1": server(3000, rates{"/a": 1500, "/b": 1500}, nil),
		"g2": server(0, nil, nil)}}
	even := View{Self: "g1", Root: "g1", Servers: map[string]ServerLoad{"g1": server(1500, rates{"/b": 1500}, nil),
		"g2": server(1500, nil, nil)}}
	h := &history{}
	for i := range 60 {
		v := hot
		if i%p.Rounds == p.Rounds-1 {
			v = even
		}
		if m, why := p.choose(now, h, v); why == "" {
			t.Errorf("round %d of an intermittent load: %+v", i, m)
		}
		now = now.Add(p.Interval)
	}
	h.over, h.rest = 0, now.Add(p.Rest)
	for now.Before(h.rest) {
		if m, why := p.choose(now, h, hot); why == "" {
			t.Errorf("%s before the rest is over: %+v", h.rest.Sub(now), m)
		}
		now = now.Add(p.Interval)
	}
	if m, why := p.choose(now, h, hot); m.Path != "/a" {
		t.Errorf("after the pause: %+v, %s", m, why)
	}
}

// TestArrivalsArePinned overloads a server with an arrived subtree, which must stay for a while.
func TestArrivalsArePinned(t *testing.T) {
	p := Policy{}.WithDefaults()
	now := time.Unix(0, 0)
	v := View{Self: "g2", Root: "g1", Servers: map[string]ServerLoad{"g1": server(0, nil, nil),
		"g2": server(3000, rates{"/.subtrees/1": 1500, "/.subtrees/1/x": 1500}, nil)}}
	h := &history{}
	p.choose(now, h, v)
	v.Servers["g1"] = server(0, nil, map[string]string{"/home": "g2:/.subtrees/1"})
	arrived := now.Add(p.Interval)
	for now = arrived; now.Before(arrived.Add(p.Stay)); now = now.Add(p.Interval) {
		if m, why := p.choose(now, h, v); why == "" {
			t.Fatalf("%s after its arrival: %+v", now.Sub(arrived), m)
		}
	}
	if m, why := p.choose(now, h, v); m.Path != "/home" || m.To != "g1" {
		t.Errorf("%s after its arrival: %+v, %s", now.Sub(arrived), m, why)
	}
}

// TestBalanceConverges runs balancers on many servers at once under constant loads. They stop with no server far
// above the mean.
func TestBalanceConverges(t *testing.T) {
	p := Policy{}.WithDefaults()
	names := []string{"g1", "g2", "g3", "g4"}
	load := make(map[string]float64) // by directory
	at := make(map[string]string)
	for i := range 24 {
		dir := fmt.Sprintf("/d%02d", i)
		load[dir], at[dir] = float64(1000+137*(i%5)), "g1"
		if i%3 == 0 {
			at[dir] = "g2"
		}
	}
	histories := make(map[string]*history)
	for _, n := range names {
		histories[n] = &history{}
	}
	now, last, moves := time.Unix(0, 0), time.Time{}, 0
	for range 1000 {
		servers := make(map[string]ServerLoad)
		for _, n := range names {
			dirs, sum := rates{}, 0.0
			for dir, owner := range at {
				if owner == n {
					dirs[dir], sum = load[dir], sum+load[dir]
				}
			}
			servers[n] = server(sum, dirs, nil)
		}
		type given struct{ dir, to string }
		var all []given
		for _, n := range names {
			m, why := p.choose(now, histories[n], View{Self: n, Root: n, Servers: servers})
			if why == "" {
				all = append(all, given{m.Path, m.To})
				histories[n].rest, histories[n].over = now.Add(p.Rest), 0
			}
		}
		for _, g := range all {
			at[g.dir], last = g.to, now
			moves++
		}
		now = now.Add(p.Interval)
	}
	sums := make(map[string]float64)
	mean := 0.0
	for dir, owner := range at {
		sums[owner] += load[dir]
		mean += load[dir] / 4
	}
	for n, sum := range sums {
		if sum > 1.25*mean {
			t.Errorf("%s has %.0f, of %.0f on average", n, sum, mean)
		}
	}
	if moves > 24 || now.Sub(last) < time.Hour {
		t.Errorf("%d moves, the last %s before the end", moves, now.Sub(last))
	}
}

func TestPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		p  Policy
		ok bool
	}{
		"defaults": {Policy{}, true}, "all": {Policy{}.WithDefaults(), true}, "interval": {Policy{Interval: -1}, false},
		"factor": {Policy{Factor: 0.5}, false},
		"margin": {Policy{Margin: 1}, false}, "rounds": {Policy{Rounds: -1}, false},
	} {
		if err := test.p.Check(); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
