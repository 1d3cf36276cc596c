package dbtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/internal/load/ycsb"
)

// sameBytes compares values as a whole, because cmp would compare them byte by byte.
var sameBytes = gocmp.Comparer(bytes.Equal)

func newRecord(key, version string) []load.Field {
	fields := make([]load.Field, 10)
	for i := range fields {
		name := fmt.Sprint("field", i)
		fields[i] = load.Field{Name: name, Value: []byte(key + "/" + name + "/" + version)}
	}
	return fields
}

// cloneFields copies and sorts fields, whose values are valid until the client's next call.
func cloneFields(fields []load.Field) []load.Field {
	var out []load.Field
	for _, f := range fields {
		out = append(out, load.Field{Name: strings.Clone(f.Name), Value: append([]byte{}, f.Value...)})
	}
	slices.SortFunc(out, func(a, b load.Field) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func readRecord(t *testing.T, c load.Client, key string, fields ...string) []load.Field {
	t.Helper()
	got, err := c.Read(t.Context(), Table, key, fields, nil)
	if err != nil {
		t.Fatalf("read of %s%v: %v", key, fields, err)
	}
	return cloneFields(got)
}

func expectFields(t *testing.T, what string, want, got []load.Field) {
	t.Helper()
	if d := gocmp.Diff(want, got, sameBytes); d != "" {
		t.Fatalf("%s: %s", what, d)
	}
}

// testRecords checks reads of some fields, updates of some fields, and missing records.
func (s *suite) testRecords(t *testing.T, cluster database.Cluster) {
	s.clearTable(t, cluster)
	c, ctx := s.openClient(t, cluster), t.Context()
	for i := range 20 {
		key := fmt.Sprint("user", i*7919)
		if _, err := c.Read(ctx, Table, key, nil, nil); !errors.Is(err, load.ErrNotFound) {
			t.Fatalf("read of a missing record: %v, want load.ErrNotFound", err)
		}
		if _, err := c.Read(ctx, Table, key, []string{"field3"}, nil); !errors.Is(err, load.ErrNotFound) {
			t.Fatalf("read of a field of a missing record: %v, want load.ErrNotFound", err)
		}
		if err := c.Delete(ctx, Table, key); !errors.Is(err, load.ErrNotFound) && !(s.BlindDelete && err == nil) {
			t.Fatalf("delete of a missing record: %v, want load.ErrNotFound", err)
		}
		want := newRecord(key, "1")
		if err := c.Insert(ctx, Table, key, want); err != nil {
			t.Fatalf("insert: %v", err)
		}
		expectFields(t, "the whole record", want, readRecord(t, c, key))
		expectFields(t, "two of its fields", []load.Field{want[3], want[7]}, readRecord(t, c, key, "field7", "field3"))
		changed := []load.Field{{Name: "field2", Value: []byte("new")}, {Name: "field9", Value: []byte("newer")}}
		if err := c.Update(ctx, Table, key, changed); err != nil {
			t.Fatalf("update: %v", err)
		}
		want[2].Value, want[9].Value = []byte("new"), []byte("newer")
		expectFields(t, "the record after an update of two fields", want, readRecord(t, c, key))
		if i%2 == 0 {
			if err := c.Delete(ctx, Table, key); err != nil {
				t.Fatalf("delete: %v", err)
			}
			if _, err := c.Read(ctx, Table, key, nil, nil); !errors.Is(err, load.ErrNotFound) {
				t.Fatalf("read after a delete: %v, want load.ErrNotFound", err)
			}
		}
	}
	err := c.Update(ctx, Table, "usernobody", newRecord("usernobody", "1")[:1])
	switch {
	case s.Upsert && err != nil:
		t.Errorf("update of a missing record: %v", err)
	case !s.Upsert && !errors.Is(err, load.ErrNotFound):
		t.Errorf("update of a missing record: %v, want load.ErrNotFound", err)
	}
	want := int64(10)
	if s.Upsert {
		want++
	}
	if n, err := cluster.Count(ctx); err != nil || n != want {
		t.Errorf("count %d, %v; want %d", n, err, want)
	}
	// Closing a client does not affect another one, and each reads the writes of the other.
	other := s.openClient(t, cluster)
	expectFields(t, "the record as read by another client", readRecord(t, c, "user7919"), readRecord(t, other, "user7919"))
	s.testBulk(t, cluster, c)
}

// testBulk inserts records together: existing ones, with different fields, and more than fit one request.
func (s *suite) testBulk(t *testing.T, cluster database.Cluster, c load.Client) {
	bulk, ok := c.(load.BulkClient)
	if !ok {
		return
	}
	s.clearTable(t, cluster)
	ctx := t.Context()
	if err := c.Insert(ctx, Table, "user0", newRecord("user0", "1")); err != nil {
		t.Fatalf("insert: %v", err)
	}
	var records []load.Record
	for i := range 300 {
		key := fmt.Sprint("user", i)
		values := newRecord(key, "2")
		if i%100 == 7 {
			values = values[:4]
		}
		records = append(records, load.Record{Key: key, Values: values})
	}
	if err := bulk.InsertAll(ctx, Table, records); err != nil {
		t.Fatalf("inserting %d records: %v", len(records), err)
	}
	for _, i := range []int{0, 1, 6, 7, 8, 107, 299} {
		expectFields(t, fmt.Sprintf("record %d", i), records[i].Values, readRecord(t, c, records[i].Key))
	}
	if n, err := cluster.Count(ctx); err != nil || n != int64(len(records)) {
		t.Errorf("count %d, %v; want %d", n, err, len(records))
	}
	if err := bulk.InsertAll(ctx, Table, nil); err != nil {
		t.Errorf("inserting no records: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := bulk.InsertAll(gone, Table, records[:1]); err == nil {
		t.Error("inserting after the context has ended: no error")
	}
}

func (s *suite) testValues(t *testing.T, cluster database.Cluster) {
	c, ctx := s.openClient(t, cluster), t.Context()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	big := bytes.Repeat([]byte{0, 0xff, 'x', '\n'}, 16<<10) // 64 KiB
	for name, value := range map[string][]byte{
		"every byte": all, "one zero": {0}, "no UTF-8": {0xc3, 0x28, 0xff}, "a line's end": []byte("\r\n$1\r\n"),
		"quotes": []byte(`'"\;--{}[]%s`), "64 KiB": big,
	} {
		want := newRecord("uservalue", "1")
		want[4].Value = value
		if err := c.Insert(ctx, Table, "uservalue", want); err != nil {
			t.Fatalf("%s: insert: %v", name, err)
		}
		expectFields(t, name, want, readRecord(t, c, "uservalue"))
		if err := c.Update(ctx, Table, "uservalue", []load.Field{{Name: "field5", Value: value}}); err != nil {
			t.Fatalf("%s: update: %v", name, err)
		}
		expectFields(t, name+", updated", []load.Field{{Name: "field5", Value: value}}, readRecord(t, c, "uservalue", "field5"))
		if err := c.Delete(ctx, Table, "uservalue"); err != nil {
			t.Fatalf("%s: delete: %v", name, err)
		}
	}
}

// scanProperty is the workload property that announces scans to clients.
const scanProperty = "scanproportion"

// testScan compares scans with a sorted list, or checks that they are refused.
func (s *suite) testScan(t *testing.T, cluster database.Cluster) {
	s.clearTable(t, cluster)
	if !s.can.Scan {
		_, err := s.openClient(t, cluster).Scan(t.Context(), Table, "user1", 5, nil, nil)
		if !errors.Is(err, load.ErrUnsupported) {
			t.Errorf("scan: %v, want load.ErrUnsupported", err)
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
		if err := c.Insert(ctx, Table, key, newRecord(key, "1")); err != nil {
			t.Fatalf("insert: %v", err)
		}
	}
	gone := keys[3]
	if err := c.Delete(ctx, Table, gone); err != nil {
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
		n, err := c.Scan(ctx, Table, test.start, test.count, test.fields, func(key string, fields []load.Field) {
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
			t.Errorf("scan of %d from %s: returned %d, visited %d", test.count, test.start, n, len(got))
		}
		if s.Unordered {
			checkUnorderedScan(t, test.start, test.count, got, keys)
			continue
		}
		if d := gocmp.Diff(slices.Clone(want), got); d != "" && len(want)+len(got) > 0 {
			t.Errorf("scan of %d from %s: %s", test.count, test.start, d)
		}
	}
	if n, err := c.Scan(ctx, Table, keys[0], 10, nil, nil); err != nil || n != 10 {
		t.Errorf("an unread scan: %d, %v", n, err)
	}
}

// checkUnorderedScan checks a scan without key order: existing records, each once, the start first.
func checkUnorderedScan(t *testing.T, start string, count int, got, keys []string) {
	t.Helper()
	if len(got) > count {
		t.Errorf("scan of %d from %s saw %d", count, start, len(got))
	}
	seen := make(map[string]bool)
	for _, k := range got {
		if _, there := slices.BinarySearch(keys, k); !there || seen[k] {
			t.Errorf("scan of %d from %s returned %s, which does not exist or was returned before", count, start, k)
		}
		seen[k] = true
	}
	if _, there := slices.BinarySearch(keys, start); there && (len(got) == 0 || got[0] != start) {
		t.Errorf("scan of %d from %s does not start with that key: %v", count, start, got[:min(len(got), 3)])
	}
}

const workers = 8

// testLoad loads a table, counts and reads it back, and runs YCSB's workloads A and, with scans, E.
func (s *suite) testLoad(t *testing.T, cluster database.Cluster) {
	s.clearTable(t, cluster)
	ctx, cancel := s.withTimeout(t)
	defer cancel()
	names := []string{"a"}
	if s.can.Scan {
		names = append(names, "e")
	}
	for i, name := range names {
		w := s.workload(t, name)
		var more []string
		if s.can.Scan { // some databases build their index for scans during the load
			more = []string{scanProperty, "0.95"}
		}
		open := s.clientOpener(cluster, more...)
		spec := load.Spec{Phase: load.PhaseLoad, Workload: w, Threads: workers, Batch: 7, Seed: 1}
		if i == 0 {
			if _, err := load.Run(ctx, spec, open, nil); err != nil {
				t.Fatalf("loading: %v", err)
			}
			if n, err := cluster.Count(ctx); err != nil || n != s.Rows {
				t.Fatalf("count after a load of %d rows: %d, %v", s.Rows, n, err)
			}
			if v, err := load.Verify(ctx, spec, open); err != nil || v.Records != s.Rows {
				t.Fatalf("verifying the load: %+v, %v", v, err)
			}
		}
		spec.Phase, spec.Operations = load.PhaseRun, 4*s.Rows
		if name == "e" {
			spec.Operations = s.Rows
		}
		began := time.Now()
		result, err := load.Run(ctx, spec, open, nil)
		if err != nil {
			t.Fatalf("running workload %s: %v", name, err)
		}
		if result.OK != spec.Operations || len(result.Errors) > 0 {
			t.Errorf("workload %s: %d of %d operations succeeded; errors %+v", name, result.OK, spec.Operations, result.Errors)
		}
		s.row.setFigure("workload_"+name+"_ops_s", float64(result.OK)/time.Since(began).Seconds())
	}
}

func (s *suite) workload(t *testing.T, name string) ycsb.Workload {
	t.Helper()
	p, ok := ycsb.Builtin(name)
	if !ok {
		t.Fatalf("no workload %s", name)
	}
	rows := strconv.FormatInt(s.Rows, 10)
	w, _, err := ycsb.Parse(p.Merge(ycsb.Properties{"recordcount": rows, "operationcount": rows}))
	if err != nil {
		t.Fatal(err)
	}
	return w
}
