package topology

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
)

// build creates a topology from YAML, with CSV files.
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
		{"half a matrix inline, in us", "matrix:\n  latency: |\n    us, A, B\n    A, , \n    B, 500,\n", nil,
			map[string][2]link.Quality{"A~B": both(link.Quality{Latency: 250 * time.Microsecond})}, "A B"},
		{"coordinates", "sites: [{name: A, lat: 0, lon: 0}, {name: B, lat: 0, lon: 1}]\ndistance: {detour: 2}", nil,
			map[string][2]link.Quality{"A~B": both(link.Quality{Latency: propagationDelay(greatCircleKm(point{0, 0}, point{0, 1}), 2)})}, "A B"},
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
