package topology

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/advice"
	"skerry/internal/link"
	"skerry/internal/strict"
)

// table3 is Table III of the FHC paper: bandwidth (Mbit/s) above the diagonal, round trip
// (ms) below it.
var table3 = [8][8]int{
	{0, 948, 990, 171, 192, 164, 151, 114},
	{189, 0, 995, 167, 206, 163, 140, 121},
	{181, 142, 0, 173, 255, 157, 138, 117},
	{223, 81, 64, 0, 489, 220, 625, 119},
	{195, 35, 109, 49, 0, 372, 271, 111},
	{207, 172, 156, 93, 153, 0, 174, 127},
	{208, 168, 152, 149, 147, 7, 0, 128},
	{219, 165, 148, 109, 142, 12, 14, 0},
}

func TestAzure8(t *testing.T) {
	got, err := Load("azure8")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"Melbourne", "Sydney", "Canberra", "Pune", "Singapore", "Seoul", "Dubai", "Virginia"}
	k := 0
	for i := range names {
		if got.Nodes[i] != (Node{Name: names[i], Site: names[i], Role: Data}) {
			t.Errorf("node %d is %+v", i, got.Nodes[i])
		}
		for j := i + 1; j < 8; j++ {
			q := link.Quality{Latency: time.Duration(table3[j][i]) * time.Millisecond / 2, Bandwidth: int64(table3[i][j]) * 1e6}
			want := Link{ID: names[i] + "~" + names[j], A: names[i], B: names[j], AB: q, BA: q}
			if diff := cmp.Diff(want, got.Links[k]); diff != "" {
				t.Errorf("link %d: -want +got:\n%s", k, diff)
			}
			k++
		}
	}
	if len(got.Links) != k {
		t.Errorf("%d links, want %d", len(got.Links), k)
	}
}

func TestPresets(t *testing.T) {
	tests := []struct {
		name         string
		nodes, links int
		rtt          time.Duration // of the first link
		bandwidth    int64
	}{
		{"pair", 2, 1, 20 * time.Millisecond, 0},
		{"triangle,rtt=40ms,bandwidth=100mbit", 3, 3, 40 * time.Millisecond, 1e8},
		{"ring:2", 2, 1, 20 * time.Millisecond, 0},
		{"ring:256", 256, 256, 20 * time.Millisecond, 0},
		{"mesh:8,latency=5ms", 8, 28, 10 * time.Millisecond, 0},
		{"azure8-geo", 8, 28, 0, 948e6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Load(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Nodes) != tt.nodes || len(got.Links) != tt.links {
				t.Errorf("%d nodes and %d links, want %d and %d", len(got.Nodes), len(got.Links), tt.nodes, tt.links)
			}
			l := got.Links[0]
			if tt.rtt > 0 && l.AB.Latency+l.BA.Latency != tt.rtt || l.AB.Bandwidth != tt.bandwidth {
				t.Errorf("first link is %+v", l)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	singapore, virginia := Point{1.35, 103.82}, Point{36.67, -78.39}
	tests := []struct {
		name string
		a, b Point
		km   float64 // great circle
	}{
		{"a degree of the equator", Point{0, 0}, Point{0, 1}, 111.195},
		{"pole to pole", Point{90, 0}, Point{-90, 0}, math.Pi * 6371.0088},
		{"over the date line", Point{0, 179.5}, Point{0, -179.5}, 111.195},
		{"London to New York", Point{51.5074, -0.1278}, Point{40.7128, -74.0060}, 5570},
		{"nowhere", singapore, singapore, 0},
	}
	for _, tt := range tests {
		if got := Distance(tt.a, tt.b); math.Abs(got-tt.km) > 0.001*tt.km+1e-9 {
			t.Errorf("%s: %.3f km, want %.3f", tt.name, got, tt.km)
		}
	}
	// 204,190 km/s: 2041.9 km of fibre are 10 ms.
	if got := Propagation(2041.9, 1); (got - 10*time.Millisecond).Abs() > 10*time.Microsecond {
		t.Errorf("2041.9 km take %v, want 10ms", got)
	}
	if got := Propagation(1000, 1.5); (got - 7346*time.Microsecond).Abs() > time.Microsecond {
		t.Errorf("1000 km with a detour of 1.5 take %v, want 7.346ms", got)
	}
	half := Between(singapore, virginia, 0.5)
	if a, b := Distance(singapore, half), Distance(half, virginia); math.Abs(a-b) > 1e-6 {
		t.Errorf("the middle is %f km from one end and %f km from the other", a, b)
	}
}

// build makes a topology of YAML, with CSV files beside it.
func build(t *testing.T, text string, files map[string]string) (Topology, error) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "t.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

// links writes a topology's links: "A~B 10ms/20ms 100mbit/0".
func quality(t Topology, id string) [2]link.Quality {
	for _, l := range t.Links {
		if l.ID == id {
			return [2]link.Quality{l.AB, l.BA}
		}
	}
	return [2]link.Quality{}
}

func TestBuild(t *testing.T) {
	const ms = time.Millisecond
	both := func(q link.Quality) [2]link.Quality { return [2]link.Quality{q, q} }
	tests := []struct {
		name, text string
		files      map[string]string
		links      map[string][2]link.Quality
		nodes      string
	}{
		{"matrix files", "matrix: {latency: l.csv, bandwidth: b.csv}", map[string]string{
			"l.csv": "ms,A,B,C\nA,0,10,20us\nB,10,0,30\nC,20us,30,0\n",
			"b.csv": "mbit;A;B;C\nA;;5;6\nB;7;;8\nC;9;1gbit;\n",
		}, map[string][2]link.Quality{
			"A~B": {{Latency: 5 * ms, Bandwidth: 5e6}, {Latency: 5 * ms, Bandwidth: 7e6}},
			"A~C": {{Latency: 10 * time.Microsecond, Bandwidth: 6e6}, {Latency: 10 * time.Microsecond, Bandwidth: 9e6}},
			"B~C": {{Latency: 15 * ms, Bandwidth: 8e6}, {Latency: 15 * ms, Bandwidth: 1e9}},
		}, "A B C"},
		{"half a matrix inline, from us", "matrix:\n  latency: |\n    us, A, B\n    A, , \n    B, 500,\n", nil,
			map[string][2]link.Quality{"A~B": both(link.Quality{Latency: 250 * time.Microsecond})}, "A B"},
		{"coordinates", "sites: [{name: A, lat: 0, lon: 0}, {name: B, lat: 0, lon: 1}]\ndistance: {detour: 2}", nil,
			map[string][2]link.Quality{"A~B": both(link.Quality{Latency: Propagation(Distance(Point{0, 0}, Point{0, 1}), 2)})}, "A B"},
		{"defaults", "sites: [A, B]\ndefaults: {rtt: 10ms, bandwidth: 1mbit, jitter: 1ms, distribution: pareto, loss: 1%, queue: 64KiB}", nil,
			map[string][2]link.Quality{"A~B": both(link.Quality{Latency: 5 * ms, Bandwidth: 1e6, Jitter: ms, Distribution: link.Pareto, Loss: 0.01, Queue: 65536})}, "A B"},
		{"several nodes at a site", "sites: [{name: A, nodes: 2}, B]\ndefaults: {rtt: 10ms, site_rtt: 1ms, site_bandwidth: 1gbit}", nil,
			map[string][2]link.Quality{
				"A-1~A-2": both(link.Quality{Latency: ms / 2, Bandwidth: 1e9}),
				"A-1~B":   both(link.Quality{Latency: 5 * ms}),
				"A-2~B":   both(link.Quality{Latency: 5 * ms}),
			}, "A-1 A-2 B"},
		{"single links only", "nodes: [x, y, z]\nlinks:\n  - {between: [y, x], rtt: 10ms, forward: {latency: 2ms, bandwidth: 5mbit}}\n", nil,
			map[string][2]link.Quality{"x~y": {{Latency: 5 * ms}, {Latency: 2 * ms, Bandwidth: 5e6}}}, "x y z"},
		{"a link between sites over a matrix", "matrix:\n  latency: |\n    ms,A,B\n    A,,10\n    B,,\nsites: [{name: A, nodes: 2}, B]\nlinks: [{between: [A, B], loss: 2%}, {between: [A-2, B], latency: 1ms}]", nil,
			map[string][2]link.Quality{
				"A-1~B":   both(link.Quality{Latency: 5 * ms, Loss: 0.02}),
				"A-2~B":   both(link.Quality{Latency: ms, Loss: 0.02}),
				"A-1~A-2": both(link.Quality{Latency: ms / 4}),
			}, "A-1 A-2 B"},
		{"ring", "sites: [A, B, C, D]\nconnect: ring\ndefaults: {latency: 1ms}", nil,
			map[string][2]link.Quality{"A~B": both(link.Quality{Latency: ms}), "B~C": both(link.Quality{Latency: ms}), "C~D": both(link.Quality{Latency: ms}), "A~D": both(link.Quality{Latency: ms})}, "A B C D"},
		{"a preset with a link changed", "from: pair\nlinks: [{between: [n1, n2], bandwidth: 1mbit}]", nil,
			map[string][2]link.Quality{"n1~n2": both(link.Quality{Latency: 10 * ms, Bandwidth: 1e6})}, "n1 n2"},
		{"a file with a site added", "from: base.yaml\nsites: [C]\ndefaults: {rtt: 4ms}", map[string]string{"base.yaml": "sites: [A, B]\nmatrix: {latency: l.csv}", "l.csv": ",A,B\nA,0,10\nB,10,0"},
			map[string][2]link.Quality{"A~B": both(link.Quality{Latency: 5 * ms}), "A~C": both(link.Quality{Latency: 2 * ms}), "B~C": both(link.Quality{Latency: 2 * ms})}, "A B C"},
		{"the topology of an experiment", "name: x\ntopology: {from: pair}\nworkload: a", nil,
			map[string][2]link.Quality{"n1~n2": both(link.Quality{Latency: 10 * ms})}, "n1 n2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := build(t, tt.text, tt.files)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, n := range got.Nodes {
				names = append(names, n.Name)
			}
			if strings.Join(names, " ") != tt.nodes {
				t.Errorf("nodes %v, want %s", names, tt.nodes)
			}
			if len(got.Links) != len(tt.links) {
				t.Errorf("%d links, want %d", len(got.Links), len(tt.links))
			}
			for id, want := range tt.links {
				if diff := cmp.Diff(want, quality(got, id)); diff != "" {
					t.Errorf("%s: -want +got:\n%s", id, diff)
				}
			}
		})
	}
}

func TestLimits(t *testing.T) {
	got, err := build(t, "nodes: [{name: a, cpu: 0.5}, {name: b, memory: 1GiB}]\ndefaults: {cpu: 2, memory: 4GiB, rtt: 1ms}", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Node{{Name: "a", Site: "a", Role: Data, CPU: 0.5, Memory: 4 << 30}, {Name: "b", Site: "b", Role: Data, CPU: 2, Memory: 1 << 30}}
	if diff := cmp.Diff(want, got.Nodes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestBadTopologies(t *testing.T) {
	matrix := func(lines ...string) string {
		return "matrix:\n  latency: |\n    " + strings.Join(lines, "\n    ") + "\n"
	}
	tests := []struct {
		name, text string
		want       []string // parts of the message
	}{
		{"unknown preset", "from: azur8", []string{"t.yaml:1:7: from: unknown preset \"azur8\"", `did you mean "azure8"?`}},
		{"no file", "from: x/y.yaml", []string{"t.yaml:1:7: from: there is no topology file", "x/y.yaml"}},
		{"a circle", "from: t.yaml", []string{"in a circle"}},
		{"ring of one", "from: ring:1", []string{"ring takes from 2 to 4096 nodes"}},
		{"ring of what", "from: ring", []string{`unknown preset "ring"`, "write ring:N"}},
		{"pair of three", "from: pair:3", []string{"write pair"}},
		{"preset option", "from: 'ring:3,bandwith=3mbit'", []string{`unknown key "bandwith"; did you mean "bandwidth"?`}},
		{"nothing", "name: x", []string{"there are no nodes", "azure8"}},
		{"site twice", "sites: [A, A]", []string{`t.yaml:1:12: sites[1]: the site "A" is named twice`}},
		{"node twice", "nodes: [a, {name: a}]", []string{`nodes[1]: the node "a" is named twice`}},
		{"node by chance twice", "sites: [{name: a, nodes: 2}, a-1]\ndefaults: {rtt: 1ms}", []string{`two nodes would be called "a-1"`}},
		{"bad name", "sites: ['a b']", []string{`sites[0]: "a b" cannot be the name of a site`}},
		{"long name", "sites: [" + strings.Repeat("x", 32) + "]", []string{"is too long for the name of a site: 32 bytes, at most 31"}},
		{"node at no site", "sites: [Oslo]\nnodes: [{name: n, site: Olso}]", []string{`nodes[0].site: the node "n" is at "Olso", which is no site; did you mean "Oslo"?`}},
		{"latitude", "sites: [{name: A, lat: 91, lon: 0}]", []string{"t.yaml:1:24: sites[0].lat: 91 is too much, the most is 90"}},
		{"half a place", "sites: [{name: A, lat: 1}]", []string{"only one of lat and lon"}},
		{"no distance", "sites: [A, B]", []string{"nothing says how far A and B are apart", "defaults.rtt"}},
		{"link to nowhere", "nodes: [a, b]\nlinks: [{between: [a, bb], rtt: 1ms}]", []string{`t.yaml:2:23: links[0].between[1]: the link leads to "bb", which is no node`, "known are a, b"}},
		{"link to itself", "nodes: [a, b]\nlinks: [{between: [a, a], rtt: 1ms}]", []string{"the link leads from a to itself"}},
		{"link without latency", "nodes: [a, b]\nlinks: [{between: [a, b], bandwidth: 1mbit}]", []string{"the link between a and b has no latency"}},
		{"one end", "nodes: [a, b]\nlinks: [{between: [a], rtt: 1ms}]", []string{"between: 1 entries is too little, the least is 2"}},
		{"negative latency", "sites: [A, B]\ndefaults: {rtt: -1ms}", []string{"defaults.rtt: out of range: the duration \"-1ms\" is negative"}},
		{"bandwidth 0", "sites: [A, B]\ndefaults: {rtt: 1ms, bandwidth: 0mbit}", []string{"t.yaml:2:33: defaults.bandwidth: out of range: a bandwidth of 0 carries nothing"}},
		{"latency and rtt", "sites: [A, B]\ndefaults: {rtt: 1ms, latency: 1ms}", []string{"rtt and latency exclude each other"}},
		{"not square: a row too few", matrix("ms,A,B", "A,0,1"), []string{"t.yaml:3:5: matrix.latency: the matrix is not square: 2 columns, 1 rows"}},
		{"not square: a row too many", matrix("ms,A", "A,0", "B,1"), []string{`t.yaml:5:5: matrix.latency: row "B" is one too many`, "not square"}},
		{"not square: a cell too few", matrix("ms,A,B", "A,0", "B,1,0"), []string{`t.yaml:4:7: matrix.latency: row "A" has 1 cells for 2 sites: the matrix is not square`}},
		{"labels differ", matrix("ms,A,B", "B,0,1", "A,1,0"), []string{`row 1 is "B" but column 1 is "A"`}},
		{"label twice", matrix("ms,A,A", "A,0,1", "A,1,0"), []string{`t.yaml:3:10: matrix.latency: column 3 names "A", want a site that no other column names`}},
		{"halves differ", matrix("ms,A,B", "A,0,10", "B,12,0"), []string{"t.yaml:5:7: matrix.latency: from B to A is 12ms, but the way back (row 1) says otherwise"}},
		{"negative cell", matrix("ms,A,B", "A,0,-5", "B,-5,0"), []string{`t.yaml:4:9: matrix.latency: from A to B: out of range: the duration "-5ms" is negative`}},
		{"diagonal", matrix("ms,A,B", "A,3,5", "B,5,0"), []string{`the cell from A to itself is "3", want 0 or nothing`}},
		{"no number", matrix("ms,A,B", "A,0,far", "B,,0"), []string{`from A to B: not a quantity: "far" is no duration`}},
		{"no such unit", matrix("parsec,A,B", "A,0,1", "B,,0"), []string{`"1parsec" is no duration`}},
		{"an empty table", "matrix: {latency: \"\\n\"}", []string{"the matrix is empty"}},
		{"no such table", "matrix: {latency: l.csv}", []string{"matrix.latency: reading the matrix", "no such file"}},
		{"strange site in a table", matrix("ms,A,Sidney", "A,0,1", "Sidney,1,0") + "sites: [A, Sydney]", []string{`the matrix names "Sidney", which is no site; did you mean "Sydney"?`}},
		{"a cell of no bandwidth", "sites: [A, B]\ndefaults: {rtt: 1ms}\nmatrix:\n  bandwidth: |\n    mbit,A,B\n    A,,0\n    B,,\n", []string{"from A to B: out of range: a bandwidth of 0"}},
		{"too many links", "sites: [{name: A, nodes: 500}]", []string{"more than 100000 links"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := build(t, tt.text, nil)
			var ps strict.Problems
			if !errors.As(err, &ps) {
				t.Fatalf("error %v, want problems", err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the message lacks %q:\n%v", part, err)
				}
			}
			for _, p := range ps {
				if p.Pos.Source == nil {
					t.Errorf("%q has no place", p.Message)
				}
			}
		})
	}
}

func TestLoadNames(t *testing.T) {
	if _, err := Load("azure9"); !errors.Is(err, ErrPreset) || !strings.Contains(err.Error(), `did you mean "azure8"?`) {
		t.Errorf("error %v", err)
	}
	if _, err := Load("nothing.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestScale(t *testing.T) {
	base, err := build(t, "sites: [{name: A, nodes: 2}, B]\ndefaults: {rtt: 10ms, jitter: 1ms}", nil)
	if err != nil {
		t.Fatal(err)
	}
	near := Scale(base, 0.2)
	if got := quality(near, "A-1~B")[0]; got != (link.Quality{Latency: time.Millisecond, Jitter: time.Millisecond}) {
		t.Errorf("between sites: %+v", got)
	}
	if got := quality(near, "A-1~A-2")[0].Latency; got != defaultSiteRTT/2 {
		t.Errorf("within a site: %v", got)
	}
	if got := quality(base, "A-1~B")[0].Latency; got != 5*time.Millisecond {
		t.Errorf("the topology that was scaled changed to %v", got)
	}
}

func TestWithClient(t *testing.T) {
	azure, err := Load("azure8")
	if err != nil {
		t.Fatal(err)
	}
	got, err := WithClient(azure, "Singapore")
	if err != nil {
		t.Fatal(err)
	}
	if n := got.Nodes[8]; n != (Node{Name: "client", Site: "Singapore", Role: Client}) {
		t.Errorf("client is %+v", n)
	}
	if len(got.Links) != 28+8 || len(azure.Links) != 28 {
		t.Errorf("%d links, want 36, and 28 without the client", len(got.Links))
	}
	if q := quality(got, "client~Melbourne"); q != quality(got, "Melbourne~Singapore") {
		t.Errorf("to Melbourne: %+v", q)
	}
	if q := quality(got, "client~Singapore")[0]; q != (link.Quality{Latency: 250 * time.Microsecond}) {
		t.Errorf("to the data node in Singapore: %+v", q)
	}

	odd, err := build(t, "nodes: [x, y]\nlinks: [{between: [x, y], rtt: 8ms, forward: {bandwidth: 1mbit}}]", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err = WithClient(odd, "y")
	if err != nil {
		t.Fatal(err)
	}
	const half = 4 * time.Millisecond
	if q := quality(got, "client~x"); q != [2]link.Quality{{Latency: half}, {Latency: half, Bandwidth: 1e6}} {
		t.Errorf("a client at y reaches x by %+v", q)
	}

	for site, hint := range map[string]string{"Singapur": `did you mean "Singapore"?`, "Atlantis": "sites with data nodes are"} {
		if _, err := WithClient(azure, site); !errors.Is(err, ErrClient) || !strings.Contains(advice.Of(err), hint) {
			t.Errorf("%s: error %v, advice %q", site, err, advice.Of(err))
		}
	}
	own := azure
	own.Nodes = append([]Node{{Name: "me", Site: "Pune", Role: Client}}, azure.Nodes...)
	if got, err := WithClient(own, ""); err != nil || len(got.Nodes) != 9 {
		t.Errorf("a topology with a client of its own: %d nodes, %v", len(got.Nodes), err)
	}
}

func TestMobility(t *testing.T) {
	base, err := build(t, "sites: [{name: A, lat: 0, lon: 0}, {name: B, lat: 0, lon: 1}, {name: C, lat: 1, lon: 0}]", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := Mobility{Bandwidth: 1e9, Reference: 100, Exponent: 1, Detour: 1.5, Sites: []Track{
		{Site: "B", Waypoints: []Waypoint{{At: 0, Lat: 0, Lon: 0.5}, {At: 10e9, Lat: 0, Lon: 10}}},
	}}
	if ps := m.Check(base); len(ps) > 0 {
		t.Fatal(ps)
	}
	profiles := m.Profiles(base, 0.5)
	if len(profiles) != 2 || profiles["A~C"] != nil {
		t.Fatalf("profiles of %d links, want those of B", len(profiles))
	}
	degree := Distance(Point{0, 0}, Point{0, 1})
	for _, tt := range []struct {
		at  time.Duration
		lon float64
	}{{0, 0.5}, {5 * time.Second, 5.25}, {10 * time.Second, 10}, {time.Minute, 10}} {
		q := profiles["A~B"].At(tt.at)
		km := degree * tt.lon
		if want := Propagation(km, 1.5) / 2; (q.Latency - want).Abs() > time.Microsecond {
			t.Errorf("at %v: latency %v, want %v", tt.at, q.Latency, want)
		}
		if want := 1e9 * min(1, 100/km); math.Abs(float64(q.Bandwidth)-want) > 1 {
			t.Errorf("at %v: bandwidth %d, want %.0f", tt.at, q.Bandwidth, want)
		}
	}
	if m.End() != 10*time.Second {
		t.Errorf("the last site arrives at %v", m.End())
	}
}
