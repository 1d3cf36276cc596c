package topology

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"skerry/internal/base/strict"
)

func TestBadTopologies(t *testing.T) {
	matrix := func(lines ...string) string {
		return "matrix:\n  latency: |\n    " + strings.Join(lines, "\n    ") + "\n"
	}
	tests := []struct {
		name, text string
		want       []string // substrings of the message
	}{
		{"unknown preset", "from: azur8", []string{"t.yaml:1:7: from: unknown preset \"azur8\"", `did you mean "azure8"?`}},
		{"no file", "from: x/y.yaml", []string{"t.yaml:1:7: from: topology file", "x/y.yaml"}},
		{"a circle", "from: t.yaml", []string{"form a cycle"}},
		{"ring of one", "from: ring:1", []string{"ring supports 2 to 4096 nodes"}},
		{"ring without a size", "from: ring", []string{`unknown preset "ring"`, "write ring:N"}},
		{"pair of three", "from: pair:3", []string{"write pair"}},
		{"preset option", "from: 'ring:3,bandwith=3mbit'", []string{`unknown key "bandwith"; did you mean "bandwidth"?`}},
		{"nothing", "name: x", []string{"the topology has no nodes", "azure8"}},
		{"site twice", "sites: [A, A]", []string{`t.yaml:1:12: sites[1]: duplicate site "A"`}},
		{"node twice", "nodes: [a, {name: a}]", []string{`nodes[1]: duplicate node "a"`}},
		{"accidentally duplicate node", "sites: [{name: a, nodes: 2}, a-1]\ndefaults: {rtt: 1ms}", []string{`duplicate node name "a-1"`}},
		{"bad name", "sites: ['a b']", []string{`sites[0]: invalid site name "a b"`}},
		{"a blank in a matrix", matrix("ms,New York,B", "New York,0,10", "B,,0"), []string{`invalid site name "New York"; use letters, digits`}},
		{"long name", "sites: [" + strings.Repeat("x", 32) + "]", []string{"has 32 bytes, at most 29 are allowed"}},
		{"node at an unknown site", "sites: [Oslo]\nnodes: [{name: n, site: Olso}]", []string{`nodes[0].site: node "n" is at the unknown site "Olso"; did you mean "Oslo"?`}},
		{"latitude", "sites: [{name: A, lat: 91, lon: 0}]", []string{"t.yaml:1:24: sites[0].lat: 91 is too large, the maximum is 90"}},
		{"half a position", "sites: [{name: A, lat: 1}]", []string{"only one of lat and lon"}},
		{"no distance", "sites: [A, B]", []string{"no latency between the sites A and B", "defaults.rtt"}},
		{"link to an unknown node", "nodes: [a, b]\nlinks: [{between: [a, bb], rtt: 1ms}]", []string{`t.yaml:2:23: links[0].between[1]: "bb" is neither a node nor a site`, "known are a, b"}},
		{"link to itself", "nodes: [a, b]\nlinks: [{between: [a, a], rtt: 1ms}]", []string{"both ends of the link are a"}},
		{"link without latency", "nodes: [a, b]\nlinks: [{between: [a, b], bandwidth: 1mbit}]", []string{"the link between a and b has no latency"}},
		{"jitter beyond the latency", "sites: [A, B]\ndefaults: {rtt: 10ms, jitter: 20ms, distribution: uniform}",
			[]string{"defaults.jitter: jitter 20ms is too large for the latency 5ms of link A~B", "give at most 5ms for the distribution uniform"}},
		{"jitter of one link", "nodes: [a, b]\nlinks: [{between: [a, b], rtt: 10ms, back: {jitter: 3ms}}]", []string{"links[0].jitter", "give at most 2.5ms for the distribution normal"}},
		{"one end", "nodes: [a, b]\nlinks: [{between: [a], rtt: 1ms}]", []string{"between: 1 entries is too small, the minimum is 2"}},
		{"negative latency", "sites: [A, B]\ndefaults: {rtt: -1ms}", []string{"defaults.rtt: out of range: the duration \"-1ms\" is negative"}},
		{"bandwidth 0", "sites: [A, B]\ndefaults: {rtt: 1ms, bandwidth: 0mbit}", []string{"t.yaml:2:33: defaults.bandwidth: out of range: a bandwidth of 0 carries nothing"}},
		{"latency and rtt", "sites: [A, B]\ndefaults: {rtt: 1ms, latency: 1ms}", []string{"rtt and latency exclude each other"}},
		{"not square: a row too few", matrix("ms,A,B", "A,0,1"), []string{"t.yaml:3:5: matrix.latency: the matrix is not square: 2 columns, 1 rows"}},
		{"not square: a row too many", matrix("ms,A", "A,0", "B,1"), []string{`t.yaml:5:5: matrix.latency: extra row "B"`, "not square"}},
		{"not square: a cell too few", matrix("ms,A,B", "A,0", "B,1,0"), []string{`t.yaml:4:7: matrix.latency: row "A" has 1 cells for 2 sites: the matrix is not square`}},
		{"labels differ", matrix("ms,A,B", "B,0,1", "A,1,0"), []string{`row 1 is "B" but column 1 is "A"`}},
		{"label twice", matrix("ms,A,A", "A,0,1", "A,1,0"), []string{`t.yaml:3:10: matrix.latency: column 3 names "A", want a site that no other column names`}},
		{"halves differ", matrix("ms,A,B", "A,0,10", "B,12,0"), []string{"t.yaml:5:7: matrix.latency: B to A is 12ms, but the opposite direction (row 1) is 10ms", "leave one half empty, or set average: true"}},
		{"three pairs differ", matrix("ms,A,B,C", "A,0,10,1", "B,12,0,2", "C,3,4,0"), []string{"B to A is 12ms", "(2 more pairs differ)"}},
		{"text in the corner", matrix("from/to,A,B", "A,0,10", "B,10,0"), []string{`t.yaml:3:5: matrix.latency: the corner has "from/to", which is not a unit of the cells; write ms, or leave it empty`}},
		{"negative cell", matrix("ms,A,B", "A,0,-5", "B,-5,0"), []string{`t.yaml:4:9: matrix.latency: from A to B: out of range: the duration "-5ms" is negative`}},
		{"diagonal", matrix("ms,A,B", "A,3,5", "B,5,0"), []string{`the cell from A to itself is "3", want 0 or nothing`}},
		{"no number", matrix("ms,A,B", "A,0,far", "B,,0"), []string{`from A to B: not a quantity: invalid duration "far"`}},
		{"no such unit", matrix("parsec,A,B", "A,0,1", "B,,0"), []string{`the corner has "parsec", which is not a unit of the cells`}},
		{"an empty table", "matrix: {latency: \"\\n\"}", []string{"the matrix is empty"}},
		{"no such table", "matrix: {latency: l.csv}", []string{"matrix.latency: reading the matrix", "no such file"}},
		{"unknown site in a table", matrix("ms,A,Sidney", "A,0,1", "Sidney,1,0") + "sites: [A, Sydney]", []string{`the matrix names the unknown site "Sidney"; did you mean "Sydney"?`}},
		{"a cell with bandwidth 0", "sites: [A, B]\ndefaults: {rtt: 1ms}\nmatrix:\n  bandwidth: |\n    mbit,A,B\n    A,,0\n    B,,\n", []string{"from A to B: out of range: a bandwidth of 0"}},
		{"too many links", "sites: [{name: A, nodes: 500}]", []string{"more than 100000 links"}},
	}
	once := map[string]bool{"bad name": true, "a blank in a matrix": true, "halves differ": true, "three pairs differ": true, "text in the corner": true}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := build(t, tt.text, nil)
			var ps strict.Problems
			if errors.As(err, &ps) && once[tt.name] && len(ps) != 1 {
				t.Errorf("%d problems, want 1:\n%v", len(ps), err)
			}
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
					t.Errorf("%q has no position", p.Message)
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
