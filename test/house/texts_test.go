package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestProgramTextsAreWellWritten holds string literals against the rule that Vale holds pages and comments
// against: errors, advice, help texts and labels.
func TestProgramTextsAreWellWritten(t *testing.T) {
	habits := habits(t)
	for _, f := range files(t) {
		if f.Test {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Errorf("%s:%d: %v", f.Name, f.line(lit.Pos()), err)
				return true
			}
			if found := habits.FindString(text); found != "" && !strings.HasPrefix(f.Name, "internal/docgen/") {
				t.Errorf("%s:%d: %q: name the thing, or use an active verb: %s", f.Name, f.line(lit.Pos()), found, text)
			}
			return true
		})
	}
}

// habits returns the words of the rule in docs/.vale/Skerry/Habits.yml as one expression.
func habits(t *testing.T) *regexp.Regexp {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(checkout, "docs", ".vale", "Skerry", "Habits.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var rule struct {
		Tokens []string `yaml:"tokens"`
	}
	if err := yaml.Unmarshal(source, &rule); err != nil || len(rule.Tokens) == 0 {
		t.Fatalf("reading the rule of habits: %d words, %v", len(rule.Tokens), err)
	}
	return regexp.MustCompile(fmt.Sprintf(`(?i)\b(?:%s)\b`, strings.Join(rule.Tokens, "|")))
}

// Limits of the main pages, in words.
const (
	maxMeanSentence = 17.0
	longSentence    = 30
	maxLongShare    = 0.03
)

// mainPages are what a new user reads.
var mainPages = []string{
	"README.md", "CONTRIBUTING.md", "docs/tutorial.md", "docs/concepts.md", "docs/events.md", "docs/choosing.md", "docs/engines.md",
	"docs/machines.md", "docs/fidelity.md", "docs/routing.md", "docs/services.md", "docs/hydra.md", "docs/metadata.md",
	"docs/results/README.md",
}

func TestSentencesOfMainPages(t *testing.T) {
	words, sentences, long := 0, 0, 0
	for _, page := range mainPages {
		text, err := os.ReadFile(filepath.Join(checkout, page))
		if err != nil {
			t.Fatal(err)
		}
		w, s, l := 0, 0, 0
		for _, sentence := range prose(string(text)) {
			n := len(strings.Fields(sentence))
			w, s = w+n, s+1
			if n > longSentence {
				l++
				t.Logf("%s: %d words: %s", page, n, sentence)
			}
		}
		if s == 0 {
			t.Fatalf("%s has no sentence", page)
		}
		t.Logf("%-24s %3d sentences, mean %.1f words, %d longer than %d", page, s, float64(w)/float64(s), l, longSentence)
		words, sentences, long = words+w, sentences+s, long+l
	}
	mean, share := float64(words)/float64(sentences), float64(long)/float64(sentences)
	t.Logf("all: mean %.1f words, %.1f %% longer than %d", mean, 100*share, longSentence)
	if mean >= maxMeanSentence || share >= maxLongShare {
		t.Errorf("sentences have %.1f words on average, %.1f %% have more than %d: at most %.0f and %.0f %%", mean, 100*share, longSentence,
			maxMeanSentence, 100*maxLongShare)
	}
}

var (
	fence    = regexp.MustCompile("(?s)```.*?```")
	image    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	listItem = regexp.MustCompile(`^\s*(?:[-*]|\d+\.)\s+`)
	ending   = regexp.MustCompile(`[.?!](?:\s+|$)`)
)

// prose returns the sentences of a page. Code, tables, headings and HTML are left out.
func prose(page string) []string {
	page = fence.ReplaceAllString(page, "\n\n")
	page = image.ReplaceAllString(page, "$1")
	var paragraphs []string
	current := ""
	flush := func() {
		if current != "" {
			paragraphs = append(paragraphs, current)
		}
		current = ""
	}
	for line := range strings.SplitSeq(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "<"):
			flush()
		case listItem.MatchString(line):
			flush()
			current = listItem.ReplaceAllString(line, "")
		default:
			current += " " + trimmed
		}
	}
	flush()
	var sentences []string
	for _, p := range paragraphs {
		for _, s := range ending.Split(p, -1) {
			if len(strings.Fields(s)) > 1 {
				sentences = append(sentences, strings.TrimSpace(s))
			}
		}
	}
	return sentences
}

var (
	quotedTest = regexp.MustCompile(`\bTest[A-Z]\w*`)
	testFunc   = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)`)
)

// testNames returns the names of the tests of each directory, relative to the checkout.
func testNames(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	forEachFile(t, "_test.go", func(file string, text []byte) {
		dir, err := filepath.Rel(checkout, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range testFunc.FindAllSubmatch(text, -1) {
			names[dir] = append(names[dir], string(f[1]))
		}
	})
	return names
}

// TestQuotedTestsExist checks that every test that a page names exists. A page may name tests by a common prefix, as
// go test -run does.
func TestQuotedTestsExist(t *testing.T) {
	names := slices.Concat(slices.Collect(maps.Values(testNames(t)))...)
	forEachFile(t, ".md", func(page string, text []byte) {
		for _, quoted := range quotedTest.FindAllString(string(text), -1) {
			if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, quoted) }) {
				t.Errorf("%s names %s, which does not exist", page, quoted)
			}
		}
	})
}

// guestRun matches the call with which a test of the emulated machine names the tests to run there.
var guestRun = regexp.MustCompile(`runTests\(t, "\w+", "skerry/([\w/]+)", "([^"]+)"\)`)

// TestGuestTestsExist checks that each test that the emulated machine is to run is one of that package. go test -run
// accepts a pattern that matches no test, so that a renamed test would be left out without a word.
func TestGuestTestsExist(t *testing.T) {
	names := testNames(t)
	source, err := os.ReadFile(filepath.Join(checkout, "test", "vm", "vm_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	calls := guestRun.FindAllStringSubmatch(string(source), -1)
	if len(calls) == 0 {
		t.Fatal("test/vm calls runTests in another way")
	}
	for _, call := range calls {
		dir, pattern := call[1], call[2]
		top, _, _ := strings.Cut(pattern, "/")
		for one := range strings.SplitSeq(strings.Trim(top, "^()$"), "|") {
			if !slices.ContainsFunc(names[dir], func(name string) bool { return strings.HasPrefix(name, one) }) {
				t.Errorf("%s has no test %s", dir, one)
			}
		}
	}
}

// runPattern matches the option with which a script or the Makefile names the tests to run.
var runPattern = regexp.MustCompile(`-run '?([^' ]+)'?`)

// TestScriptPatternsMatchTests checks that each alternative of such a pattern matches a test.
func TestScriptPatternsMatchTests(t *testing.T) {
	names := slices.Concat(slices.Collect(maps.Values(testNames(t)))...)
	check := func(file string, text []byte) {
		for _, found := range runPattern.FindAllStringSubmatch(string(text), -1) {
			for one := range strings.SplitSeq(found[1], "|") {
				if !slices.ContainsFunc(names, regexp.MustCompile(one).MatchString) {
					t.Errorf("%s runs the tests %q, and no test has that name", file, one)
				}
			}
		}
	}
	forEachFile(t, ".sh", check)
	forEachFile(t, "Makefile", check)
}

// forEachFile calls f for every file of the checkout whose name ends in suffix. Hidden folders and other people's
// files are left out.
func forEachFile(t *testing.T, suffix string, f func(name string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(checkout, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && file != checkout):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, suffix):
			return nil
		}
		text, err := os.ReadFile(file)
		if err == nil {
			f(file, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
