package load

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/load/ycsb"
	"skerry/internal/record"
)

// A drive draws its keys for the operation count of its properties, whatever ends it, and warns of inserted
// records that no request can choose.
func TestKeysAreDrawnForTheOperationCount(t *testing.T) {
	for _, tt := range []struct {
		workload, count string
		keys            *record.Keys
		warns           bool
	}{
		{"e", "20", &record.Keys{ExpectedOperations: 20, ExpectedInserts: 2}, true},
		{"e", "1000000000", &record.Keys{ExpectedOperations: 1_000_000_000, ExpectedInserts: 100_000_000}, false},
		{"d", "20", nil, false}, // latest follows the inserts
		{"a", "20", nil, false},
	} {
		w := workload(t, tt.workload, ycsb.Properties{"operationcount": tt.count})
		r, _ := drive(t, loaded(t, w), Spec{Workload: w, Operations: 500, Duration: time.Hour, Seed: 1})
		if d := cmp.Diff(tt.keys, r.Keys()); d != "" {
			t.Errorf("%s, %s operations: %s", tt.workload, tt.count, d)
		}
		if warns := r.KeyspaceWarning(); (warns != "") != tt.warns || strings.Contains(strings.Join(r.Warnings, "\n"), "larger operationcount") != tt.warns {
			t.Errorf("%s, %s operations: %q, warnings %q", tt.workload, tt.count, warns, r.Warnings)
		}
	}
}
