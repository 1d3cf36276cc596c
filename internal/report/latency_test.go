package report

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

// A cell with a few more updates and one with a few more reads are compared by one operation.
func TestCellsShareLeadingOperation(t *testing.T) {
	trial := func(scale float64, reads, updates int64, read, update float64) record.Trial {
		return record.Trial{
			State: record.TrialOK, Verdict: record.Verdict{State: record.Valid}, Goodput: 100,
			Parameters: map[string]any{"scale": scale, "workload": "a"},
			Operations: map[string]record.OperationSummary{
				"READ":   {Count: reads, Response: record.Latency{P99: read, Max: read}},
				"UPDATE": {Count: updates, Response: record.Latency{P99: update, Max: update}},
			},
		}
	}
	for name, tt := range map[string]struct {
		near, far record.Trial
		want      string
	}{
		"the leading operation changes": {trial(0.2, 900, 100, 23_200, 40_000), trial(1, 100, 900, 116_000, 224_000), "UPDATE from 40.0 ms"},
		"reads grow more":               {trial(0.2, 500, 500, 20_000, 100_000), trial(1, 500, 500, 200_000, 224_000), "READ from 20.0 ms"},
	} {
		d := &record.Dir{Summary: record.Summary{Trials: []record.Trial{tt.near, tt.far}}}
		m := newModel(d)
		var mains []string
		for _, c := range m.cells {
			o, _ := c.leadingOperation()
			mains = append(mains, o.name)
		}
		if mains[0] != mains[1] {
			t.Errorf("%s: the cells are compared by %v", name, mains)
		}
		if got := strings.Join(m.latencyFinding(), " "); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q in it", name, got, tt.want)
		}
	}
}
