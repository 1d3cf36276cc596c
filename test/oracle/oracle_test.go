package oracle

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"skerry/internal/install"
	"skerry/internal/load/ycsb"
	"skerry/test/testkit"
)

const (
	corpus = "../corpus/workloads/ycsb"
	draws  = 1_000_000
	// prefix is the number of records, operations and inserts that are compared one by one.
	prefix = 500
	// falseAlarm bounds the probability that any comparison of one run of TestYCSB fails although both sides draw from
	// the same distribution. YCSB's draws cannot be seeded; Skerry's have the seed 1.
	falseAlarm = 1e-6
)

// YCSB 0.17.0 draws operations for each property file, and Skerry's are compared: operations, keys (by age if the
// newest are preferred), fields, lengths of values and of scans by chi-square; names of keys and fields, the order of
// inserts, and values that reads verify, one by one.
func TestYCSB(t *testing.T) {
	testkit.Need(t, testkit.Installed(Recipe))
	draw := compile(t)
	files, err := filepath.Glob(corpus + "/*.properties")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d property files, %v", len(files), err)
	}
	level := falseAlarm / float64(len(files)*mostStatistics)
	t.Chdir(corpus) // files name histograms in their folder
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(strings.TrimSuffix(name, ".properties"), func(t *testing.T) {
			w := workload(t, name)
			theirs := draw(t, name)
			compareSequences(t, w, theirs)
			got, want := drawOurs(w), theirs.counts
			if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) || len(want) > mostStatistics {
				t.Fatalf("Skerry counts %v, YCSB %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			for _, statistic := range slices.Sorted(maps.Keys(want)) {
				x, cells, p := chiSquare(got[statistic], want[statistic])
				t.Logf("%-14s %5d values, chi-square %.0f in %d cells, p = %.2g", statistic, len(want[statistic]), x, cells, p)
				if p < level {
					t.Errorf("%s differ: p = %.2g, below %.2g", statistic, p, level)
				}
			}
		})
	}
}

func workload(t *testing.T, file string) ycsb.Workload {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries, err := ycsb.ReadEntries(f)
	if err != nil {
		t.Fatal(err)
	}
	p := ycsb.CollectEntries(entries)
	w, _, err := ycsb.Parse(p)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// drawn has the draws of YCSB: counts by statistic and value, and the beginning of each sequence.
type drawn struct {
	counts               counts
	loads, keys, inserts [][]string
}

// compile compiles Draw.java and returns a function that runs it for a property file.
func compile(t *testing.T) func(t *testing.T, file string) drawn {
	t.Helper()
	dir, err := install.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	in, err := install.Store{Dir: dir}.Find(t.Context(), Recipe, "")
	if err != nil {
		t.Fatal(err)
	}
	lib, classes := filepath.Join(in.Dir, "lib"), t.TempDir()
	compiler, err := filepath.Glob(filepath.Join(lib, "ecj-*.jar"))
	if err != nil || len(compiler) != 1 {
		t.Fatalf("compilers %v, %v", compiler, err)
	}
	jars, err := filepath.Glob(filepath.Join(lib, "*.jar"))
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join(jars, ":")
	java := func(t *testing.T, args ...string) []byte {
		t.Helper()
		var stdout, stderr bytes.Buffer
		c := exec.CommandContext(t.Context(), in.Programs["java"], append([]string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:-UsePerfData"}, args...)...)
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Run(); err != nil {
			t.Fatalf("java %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return stdout.Bytes()
	}
	java(t, "-jar", compiler[0], "-source", "11", "-target", "11", "-nowarn", "-proc:none", "-cp", path, "-d", classes, "Draw.java")
	return func(t *testing.T, file string) drawn {
		t.Helper()
		return parse(t, java(t, "-cp", classes+":"+path, "site.ycsb.workloads.Draw", file, strconv.Itoa(draws), strconv.Itoa(prefix)))
	}
}

// parse parses the output of Draw.
func parse(t *testing.T, text []byte) drawn {
	t.Helper()
	d := drawn{counts: counts{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		switch f[0] {
		case "load":
			d.loads = append(d.loads, f[1:])
		case "key":
			d.keys = append(d.keys, f[1:])
		case "inserted":
			d.inserts = append(d.inserts, f[1:])
		case "count":
			n, err := strconv.ParseInt(f[3], 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			d.counts.add(f[1], f[2], n)
		default:
			t.Fatalf("YCSB printed %q", lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return d
}

// compareSequences compares the deterministic output of YCSB.
func compareSequences(t *testing.T, w ycsb.Workload, theirs drawn) {
	t.Helper()
	if len(theirs.loads) == 0 || len(theirs.keys) < prefix {
		t.Fatalf("YCSB loaded %d fields and chose %d keys", len(theirs.loads), len(theirs.keys))
	}
	g := ycsb.NewSource(w, 1).NewGenerator()
	for i, want := range theirs.loads {
		n, field := i/w.Fields, i%w.Fields
		op := g.Load(uint64(n))
		// YCSB's fields are sorted by name here, which is another order from ten fields on.
		values := slices.SortedFunc(slices.Values(op.Values), func(a, b ycsb.Field) int { return strings.Compare(a.Name, b.Name) })
		v := values[field]
		got := []string{op.Key, v.Name, want[2], ""}
		if w.FieldLength.Distribution == ycsb.Constant {
			got[2] = strconv.Itoa(len(v.Value))
		}
		if w.DataIntegrity {
			got[3] = string(v.Value)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("record %d of the load is %q, YCSB's %q", n, got, want)
		}
	}
	for _, want := range theirs.keys {
		n, err := strconv.ParseInt(want[0], 10, 64)
		if err != nil || w.Key(n) != want[1] {
			t.Fatalf("the key of record %s is %s, YCSB's %s (%v)", want[0], w.Key(n), want[1], err)
		}
	}
	for i, want := range theirs.inserts {
		if got := w.Key(w.RecordCount + int64(i)); got != want[0] {
			t.Fatalf("insert %d is of %s, YCSB's of %s", i, got, want[0])
		}
	}
	if (w.Mix.Insert > 0) != (len(theirs.inserts) > 0) {
		t.Fatalf("YCSB inserted %d records", len(theirs.inserts))
	}
}

// drawOurs counts the same statistics as Draw.
func drawOurs(w ycsb.Workload) counts {
	c := counts{}
	s := ycsb.NewSource(w, 1)
	g := s.NewGenerator()
	byAge := w.Requests.Distribution == ycsb.Latest || w.Requests.Distribution == ycsb.Exponential
	for n := range uint64(draws) {
		last := s.Inserts().Last()
		op := g.Next(n)
		kind := op.Kind.String()
		if op.Kind == ycsb.ReadModifyWrite {
			kind = "READUPDATE"
		}
		c.add("operation", kind, 1)
		if op.Kind == ycsb.Insert {
			s.Inserts().Complete(op.Number, true)
			c.addLengths("insert-length", w, op.Values)
			continue
		}
		if byAge {
			c.add(fmt.Sprintf("age-%d", 4*n/draws), strconv.FormatInt(last-op.Number, 10), 1)
		} else {
			c.add("key", strconv.FormatInt(op.Number, 10), 1)
		}
		switch op.Kind {
		case ycsb.Scan:
			c.add("scan-fields", fieldsOf(op.Fields), 1)
			c.add("scan-length", strconv.Itoa(op.Length), 1)
		case ycsb.Read, ycsb.ReadModifyWrite:
			c.add("read-fields", fieldsOf(op.Fields), 1)
		}
		if op.Kind == ycsb.Update || op.Kind == ycsb.ReadModifyWrite {
			var names []string
			for _, v := range op.Values {
				names = append(names, v.Name)
			}
			c.add("update-fields", fieldsOf(names), 1)
			c.addLengths("update-length", w, op.Values)
		}
	}
	return c
}

func fieldsOf(names []string) string {
	switch len(names) {
	case 0:
		return "*"
	case 1:
		return names[0]
	}
	return strconv.Itoa(len(names))
}
