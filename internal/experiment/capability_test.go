package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
)

// fake is a database that only has capabilities.
type fake struct {
	database.Database
	can database.Capabilities
}

func (f fake) Capabilities() database.Capabilities { return f.can }

func (f fake) Check(_ int, options database.Options) error {
	for name := range options {
		if name != "replicas" {
			return fmt.Errorf("unknown option %s", name)
		}
	}
	return nil
}

func databases() map[string]database.Database {
	return map[string]database.Database{
		"redis": fake{can: database.Capabilities{Scan: true, MinNodes: 3}},
		"plain": fake{can: database.Capabilities{MinNodes: 1}},
	}
}

func TestCheckCapabilities(t *testing.T) {
	tests := []struct {
		name string
		sets []string
		want []string
	}{
		{"as it is", nil, nil},
		{"a known option", []string{"database.options.replicas=1"}, nil},
		{"unknown database", []string{"database=rediss"},
			[]string{`--set database=rediss: database.name: unknown database "rediss"; did you mean "redis"?`}},
		{"too few nodes", []string{"database.count=2"}, []string{"--set database.count=2: database.count: redis needs at least 3 nodes, got 2"}},
		{"a database without scans", []string{"database=plain", "workload=e"},
			[]string{"--set workload=e: workload.name: workload e scans, plain cannot; use a workload without scans, not e"}},
		{"an unknown option", []string{"database.options.replcas=1"},
			[]string{"--set database.options.replcas=1: database.options.replcas: unknown option replcas"}},
		{"in one trial only", []string{"matrix.database=[redis, plain]", "matrix.workload=[a, e]"},
			[]string{"--set matrix.workload=[a, e]: workload.name: workload e scans, plain cannot; use a workload without scans, not e"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			var ps interface{ Unwrap() []error }
			if err := CheckCapabilities(parse(t, small, tt.sets...), databases()); errors.As(err, &ps) {
				for _, p := range ps.Unwrap() {
					got = append(got, p.Error())
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	v := Validate("../../experiments/quickstart.yaml", []string{"repetitions=2"}, true, databases())
	if !v.Valid || v.Trials != 8 || v.EstimateS == 0 || v.Err() != nil {
		t.Fatalf("%+v", v)
	}
	var b bytes.Buffer
	if err := v.Describe(&b, true); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"quickstart.yaml is valid: A Redis Cluster over eight datacentres",
		"redis on 8 nodes, client at Singapore",
		"8 trials: workload a, c x scale 0.2, 1 x 2 repetitions",
		"each trial: warm-up 500ms, then 2s",
		"ORDER  TRIAL  REPETITION  WORKLOAD  SCALE  SEED",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("the description lacks %q:\n%s", part, b.String())
		}
	}

	v = Validate("../../experiments/quickstart.yaml", []string{"scael=2", "repetitions=0"}, false, databases())
	want := []Mistake{
		{File: "--set scael=2", Path: "scael", Message: `unknown key "scael"`, Hint: `did you mean "scale"?`},
		{File: "--set repetitions=0", Path: "repetitions", Message: "repetitions: 0 is too small, the minimum is 1"},
	}
	if diff := cmp.Diff(want, v.Problems); diff != "" || v.Valid || v.Err() == nil {
		t.Errorf("-want +got:\n%s", diff)
	}

	v = Validate("nothing.yaml", nil, false, databases())
	if len(v.Problems) != 1 || v.Problems[0].File != "nothing.yaml" {
		t.Errorf("%+v", v)
	}
}
