package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/database/churn"
	"skerry/internal/load"
)

// scanProperty is the workload's, by which a client knows that it will be asked to
// scan.
const scanProperty = "scanproportion"

// testScan compares scans with a sorted list, or checks that they are refused.
func (s *suite) testScan(t *testing.T, cluster database.Cluster) {
	s.clearTable(t, cluster)
	if !s.can.Scan {
		_, err := s.openClient(t, cluster).Scan(t.Context(), churn.Table, "user1", 5, nil, nil)
		if !errors.Is(err, load.ErrUnsupported) {
			t.Errorf("a scan ended with %v, want load.ErrUnsupported", err)
		}
		s.row.markUnclaimed("scan")
		return
	}
	c, ctx := s.openClient(t, cluster, scanProperty, "0.95"), t.Context()
	var keys []string
	for i := range 200 {
		key := fmt.Sprintf("user%06d", i*i*37%999_983)
		if slices.Contains(keys, key) {
			continue
		}
		keys = append(keys, key)
		if err := c.Insert(ctx, churn.Table, key, newRecord(key, "1")); err != nil {
			t.Fatalf("insert: %v", err)
		}
	}
	gone := keys[3]
	if err := c.Delete(ctx, churn.Table, gone); err != nil {
		t.Fatalf("delete: %v", err)
	}
	keys = slices.Delete(keys, 3, 4)
	slices.Sort(keys)
	for _, test := range []struct {
		start  string
		count  int
		fields []string
	}{
		{keys[0], 10, nil}, {keys[50], 1, nil}, {keys[100], 100, nil}, {keys[150], 1000, nil}, {"user", 5, nil},
		{keys[20] + "x", 5, nil}, {"userz", 5, nil}, {gone, 3, nil}, {keys[7], 20, []string{"field1", "field8"}},
	} {
		from, _ := slices.BinarySearch(keys, test.start)
		want := keys[from:min(from+test.count, len(keys))]
		var got []string
		n, err := c.Scan(ctx, churn.Table, test.start, test.count, test.fields, func(key string, fields []load.Field) {
			got = append(got, string([]byte(key)))
			expected := newRecord(key, "1")
			if test.fields != nil {
				expected = []load.Field{expected[1], expected[8]}
			}
			if d := gocmp.Diff(expected, cloneFields(fields), sameBytes); d != "" {
				t.Errorf("scan of %d from %s: record %s: %s", test.count, test.start, key, d)
			}
		})
		if err != nil {
			t.Fatalf("scan of %d from %s: %v", test.count, test.start, err)
		}
		if n != len(got) {
			t.Errorf("scan of %d from %s: said that it saw %d, visited %d", test.count, test.start, n, len(got))
		}
		if s.Unordered {
			checkUnorderedScan(t, test.start, test.count, got, keys)
			continue
		}
		if d := gocmp.Diff(slices.Clone(want), got); d != "" && len(want)+len(got) > 0 {
			t.Errorf("scan of %d from %s: %s", test.count, test.start, d)
		}
	}
	if n, err := c.Scan(ctx, churn.Table, keys[0], 10, nil, nil); err != nil || n != 10 {
		t.Errorf("a scan that nobody looks at: %d, %v", n, err)
	}
}

// checkUnorderedScan checks a scan of a database that has no order of keys: it sees records that
// are there, each once, no more than were asked for, the one at the start first.
func checkUnorderedScan(t *testing.T, start string, count int, got, keys []string) {
	t.Helper()
	if len(got) > count {
		t.Errorf("scan of %d from %s saw %d", count, start, len(got))
	}
	seen := make(map[string]bool)
	for _, k := range got {
		if _, there := slices.BinarySearch(keys, k); !there || seen[k] {
			t.Errorf("scan of %d from %s saw %s, which is not there or was seen before", count, start, k)
		}
		seen[k] = true
	}
	if _, there := slices.BinarySearch(keys, start); there && (len(got) == 0 || got[0] != start) {
		t.Errorf("scan of %d from %s does not begin with it: %v", count, start, got[:min(len(got), 3)])
	}
}
