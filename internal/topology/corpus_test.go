package topology

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"skerry/internal/base/strict"
)

const corpus = "../../test/corpus/"

func readMatrixFile(file, more string) (Topology, error) {
	return Spec{Matrix: MatrixSpec{Latency: corpus + "matrices/" + file, Average: more == "average"}}.Build(".", os.ReadFile)
}

// Matrices in the formats of other programs are read, or rejected with one message per cause.
func TestCorpusMatrices(t *testing.T) {
	for file, want := range map[string][]string{
		"regions-labelled.csv": {`the corner has "from/to", which is not a unit of the cells`},
		"regions-measured.csv": {"eu-west to eu-north is 41.4ms, but the opposite direction (row 1) is 41.2ms: round-trip times must agree (27 more pairs differ)"},
		"cities.csv":           {`invalid site name "New York"`, `invalid site name "Hong Kong"`},
	} {
		_, err := readMatrixFile(file, "")
		var ps strict.Problems
		if !errors.As(err, &ps) || len(ps) != len(want) {
			t.Errorf("%s: %d problems, want %d: %v", file, len(ps), len(want), err)
			continue
		}
		for i, p := range ps {
			if !strings.Contains(p.Message, want[i]) || p.Hint == "" {
				t.Errorf("%s: %q (%s), want %q with a hint", file, p.Message, p.Hint, want[i])
			}
		}
	}
	got, err := readMatrixFile("regions-measured.csv", "average")
	if err != nil {
		t.Fatal(err)
	}
	if rtt := got.Links[0].AB.Latency + got.Links[0].BA.Latency; len(got.Links) != 28 || rtt != 41300*time.Microsecond {
		t.Errorf("%d links, %s of %v, want 28 and 41.3ms", len(got.Links), got.Links[0].ID, rtt)
	}
}

func TestCorpusTopologies(t *testing.T) {
	got, err := Load(corpus + "topologies/two-carriers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Links) != 2 || got.Links[0].ID != "radio" || got.Links[1].ID != "branch~datacentre#1" {
		t.Fatalf("links: %+v", got.Links)
	}
	radio, fibre := got.Links[0], got.Links[1]
	if math.Abs(radio.AB.LossShare()-0.5/13) > 1e-9 || radio.AB.Burst.R != 1.0/8 {
		t.Errorf("the radio link: %+v", radio.AB)
	}
	if fibre.AB.Bandwidth != 0 || fibre.BA.Bandwidth != 5e6 || fibre.AB.Burst != nil {
		t.Errorf("the fibre: %+v", fibre)
	}
}
