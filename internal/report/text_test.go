package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", path, diff)
	}
}

func text(t *testing.T, dir string, o TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	must(t, Text(&b, open(t, dir), o))
	return strings.ReplaceAll(b.String(), dir, "runs/DIR")
}

func TestText(t *testing.T) {
	quick, three := quickstart.make(t), smallRun(t)
	killed := small
	killed.only = 7
	for _, c := range []struct {
		name, dir string
		o         TextOptions
	}{
		{"quickstart.txt", quick, TextOptions{}},
		{"repetitions.txt", three, TextOptions{}},
		{"repetitions-80.txt", three, TextOptions{Width: 80}},
		{"trials.txt", three, TextOptions{Trials: true}},
		{"killed.txt", killed.make(t), TextOptions{}},
	} {
		t.Run(c.name, func(t *testing.T) { golden(t, c.name, []byte(text(t, c.dir, c.o))) })
	}
}

func TestNarrowTerminal(t *testing.T) {
	dir := smallRun(t)
	for _, width := range []int{100, 80, 60} {
		for line := range strings.Lines(text(t, dir, TextOptions{Width: width})) {
			if strings.Contains(line, "──") && utf8.RuneCountInString(line) > width+1 {
				t.Errorf("at width %d the table is %d wide", width, utf8.RuneCountInString(line)-1)
			}
		}
	}
}
