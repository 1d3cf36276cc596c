package house

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Limits of CONTRIBUTING.md. Those of the whole tree only ever become smaller.
const (
	maxFileLines     = 400
	maxFunctionLines = 80
	maxDepth         = 4
	maxLineLength    = 140 // characters
	maxLongLines     = 330 // Go lines that are longer
	maxProductLines  = 154_600
	maxFiles         = 780
	maxPackages      = 160
	maxRooms         = 20 // of internal and systems
	maxCommands      = 55
	maxFlags         = 335
)

func TestSizesOfFilesAndFunctions(t *testing.T) {
	long := 0
	for _, f := range files(t) {
		if len(f.Text) > maxFileLines && !f.Test {
			t.Errorf("%s has %d lines, more than %d", f.Name, len(f.Text), maxFileLines)
		}
		for i, line := range f.Text {
			if n := len([]rune(line)); n > maxLineLength {
				t.Logf("%s:%d has %d characters, more than %d", f.Name, i+1, n, maxLineLength)
				long++
			}
		}
		for _, fn := range f.Functions() {
			if f.Test {
				continue
			}
			if fn.Lines > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, more than %d", f.Name, fn.Name, fn.Lines, maxFunctionLines)
			}
			if fn.Depth > maxDepth {
				t.Errorf("%s: %s nests control statements %d deep, more than %d", f.Name, fn.Name, fn.Depth, maxDepth)
			}
		}
	}
	if long > maxLongLines {
		t.Errorf("%d lines have more than %d characters: at most %d", long, maxLineLength, maxLongLines)
	}
}

func TestLinesOfTypeScript(t *testing.T) {
	root := filepath.Join(checkout, "web", "src")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && d.Name() == "go" {
			return filepath.SkipDir // generated
		}
		if err != nil || d.IsDir() || filepath.Ext(file) != ".ts" {
			return err
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(source), "\n") {
			if n := len([]rune(line)); n > maxLineLength {
				t.Errorf("%s:%d has %d characters, more than %d", file, i+1, n, maxLineLength)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTreeIsWithinLimits prints the figures of the whole product and holds their limits.
func TestTreeIsWithinLimits(t *testing.T) {
	var lengths []int
	dirs, lines, rooms := map[string]bool{}, 0, map[string]*[2]int{}
	longest, deepest := Function{}, Function{}
	for _, f := range files(t) {
		if f.Test {
			continue
		}
		dir := path.Dir(f.Name)
		dirs[dir] = true
		lengths = append(lengths, len(f.Text))
		lines += len(f.Text)
		room, _, _ := strings.Cut(shorten(dir), "/")
		if rooms[room] == nil {
			rooms[room] = new([2]int)
		}
		rooms[room][0]++
		rooms[room][1] += len(f.Text)
		for _, fn := range f.Functions() {
			fn.Name = f.Name + ": " + fn.Name
			if fn.Lines > longest.Lines {
				longest = fn
			}
			if fn.Depth > deepest.Depth {
				deepest = fn
			}
		}
	}
	var names []string
	for room := range rooms {
		names = append(names, room)
	}
	slices.Sort(names)
	for _, room := range names {
		t.Logf("%-10s %3d files %6d lines", room, rooms[room][0], rooms[room][1])
	}
	slices.Sort(lengths)
	commands, flags := countCommands(t)
	for _, figure := range []struct {
		name       string
		value, max int
	}{
		{"lines of Go, tests left out", lines, maxProductLines},
		{"files", len(lengths), maxFiles},
		{"packages", len(dirs), maxPackages},
		{"rooms", countRooms(packages(t)), maxRooms},
		{"documented commands", commands, maxCommands},
		{"documented flags", flags, maxFlags},
		{"lines of the longest function (" + longest.Name + ")", longest.Lines, maxFunctionLines},
		{"nested control statements (" + deepest.Name + ")", deepest.Depth, maxDepth},
	} {
		t.Logf("%7d of %7d %s", figure.value, figure.max, figure.name)
		if figure.value > figure.max {
			t.Errorf("%d %s, more than %d", figure.value, figure.name, figure.max)
		}
	}
	t.Logf("lines a file: median %d, p90 %d, most %d", lengths[len(lengths)/2], lengths[len(lengths)*9/10], lengths[len(lengths)-1])
	for _, program := range []string{"skerry", "hydra", "metad"} {
		if info, err := os.Stat(filepath.Join(checkout, "bin", program)); err == nil {
			t.Logf("%7.1f MB bin/%s", float64(info.Size())/1e6, program)
		}
	}
}

func countRooms(packages []Package) int {
	rooms := map[string]bool{}
	for _, p := range packages {
		rooms[p.Room()] = true
	}
	return len(rooms)
}

var flagRow = regexp.MustCompile("(?m)^\\| `-")

// countCommands returns how many commands and rows of flags docs/commands has.
func countCommands(t *testing.T) (commands, flags int) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(checkout, "docs", "commands", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages of commands: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("```\n")) && filepath.Base(page) != "README.md" {
			commands++
			flags += len(flagRow.FindAll(text, -1))
		}
	}
	return commands, flags
}
