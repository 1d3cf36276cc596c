package docs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"skerry/internal/database/redis"
	"skerry/test/testkit"
)

// fast shortens every run of the tutorial as its experiments specify, for a busy machine.
const fast = `set -euo pipefail
skerry() {
	if [ "$1" = run ]; then command skerry run "${@:2}" --fast --retries 0; else command skerry "$@"; fi
}
`

// shell finds the commands of a page: its sh blocks.
var shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

// The commands of the tutorial succeed in order.
func TestTutorial(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN, testkit.FrontEnd, testkit.Installed(redis.Recipe))
	follow(t, "tutorial.md", "offices.html", "goodput/s", "2 assertions held")
}

// So do those of the how-to for an own database.
func TestOwnDatabaseStepByStep(t *testing.T) {
	testkit.Need(t, testkit.Root, testkit.TUN, testkit.FrontEnd)
	follow(t, "howto/own-database.md", "distance.yaml is valid", "distance.html", "goodput/s", "exec:shop")
}

// follow runs the sh blocks of a page in order, in an empty folder.
func follow(t *testing.T, page string, wanted ...string) {
	t.Helper()
	var script strings.Builder
	script.WriteString(fast)
	for _, m := range shell.FindAllStringSubmatch(read(t, filepath.Join(root, "docs", filepath.FromSlash(page))), -1) {
		script.WriteString(m[1])
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+program(t)+":"+os.Getenv("PATH"), "SKERRY_STATE="+filepath.Join(dir, "state"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range wanted {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no output contains %q:\n%s", want, &out)
		}
	}
}

// experiment finds the complete experiments of a page.
var experiment = regexp.MustCompile("(?ms)^( *)```yaml\n( *name: .*?)^ *```")

// The experiments on pages are valid, including the spelling of their assertions.
func TestExperiments(t *testing.T) {
	exe := filepath.Join(program(t), "skerry")
	found := 0
	for _, page := range pages(t) {
		for _, m := range experiment.FindAllStringSubmatch(read(t, page), -1) {
			if !strings.Contains(m[2], "database:") {
				continue
			}
			found++
			file := filepath.Join(t.TempDir(), "shown.yaml")
			if err := os.WriteFile(file, []byte(regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[2], "")), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(exe, "validate", file)
			for _, variable := range regexp.MustCompile(`env: (\w+)`).FindAllStringSubmatch(m[2], -1) {
				cmd.Env = append(cmd.Environ(), variable[1]+"=secret")
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", page, err, out, m[2])
			}
		}
	}
	if found < 2 {
		t.Errorf("found only %d experiments", found)
	}
}

// The notebook draws its figure from a recorded run.
func TestNotebook(t *testing.T) {
	testkit.Need(t, testkit.Jupyter)
	run, err := filepath.Abs("testdata/run")
	if err != nil {
		t.Fatal(err)
	}
	figure := filepath.Join(t.TempDir(), "figure.svg")
	cmd := exec.CommandContext(t.Context(), "jupyter", "nbconvert", "--to", "notebook", "--execute", "--output-dir", t.TempDir(),
		filepath.Join(root, "examples", "notebook", "paper-figure.ipynb"))
	cmd.Env = append(os.Environ(), "SKERRY_RUN="+run, "SKERRY_FIGURE="+figure, "MPLBACKEND=agg")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(read(t, figure), "<svg") {
		t.Error("the figure is missing")
	}
}

// The lines that open a run in pandas and in DuckDB work.
func TestAnalysisExamplesWork(t *testing.T) {
	testkit.Need(t, testkit.Analysis)
	script := shown(t, "python") + `
goodput = trials.groupby("parameters.scale")["goodput_ops_s"].agg(["mean", "std", "count"])
assert list(goodput["count"]) == [2, 2] and (goodput["mean"] > 0).all(), goodput
assert (seconds["t"] >= 0).any() and seconds["ok"].sum() > 0, seconds
import duckdb
for line in '''` + shown(t, "sql") + `'''.strip().splitlines():
    assert duckdb.sql(line).fetchall(), line
`
	analyse(t, "python3", "-c", script)
}

// So do the lines for R.
func TestRExamplesWork(t *testing.T) {
	testkit.Need(t, testkit.R)
	analyse(t, "Rscript", "-e", shown(t, "r")+`
goodput <- aggregate(goodput_ops_s ~ parameters.scale, trials, length)
stopifnot(goodput$goodput_ops_s == c(2, 2), trials$goodput_ops_s > 0, any(seconds$t >= 0), sum(seconds$ok) > 0)
`)
}

// shown returns the code blocks of docs/data.md in a language.
func shown(t *testing.T, language string) string {
	t.Helper()
	m := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```").FindStringSubmatch(read(t, filepath.Join(root, "docs", "data.md")))
	if m == nil {
		t.Fatalf("docs/data.md has no %s", language)
	}
	return m[1]
}

// analyse runs a command in a folder whose newest run is recorded.
func analyse(t *testing.T, name string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	stored, err := filepath.Abs(filepath.Join(root, "internal", "report", "webdata", "testdata", "two-distances"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "runs"), 0o755), os.Symlink(stored, filepath.Join(dir, "runs", "latest"))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// place is the folder in which the programs are built once.
var place string

var build = sync.OnceValue(func() error { return testkit.BuildPrograms(place, "skerry", "hydra", "metad") })

func TestMain(m *testing.M) {
	var err error
	if place, err = os.MkdirTemp("", "skerry-docs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(place)
	os.Exit(code)
}

// program returns the folder of the programs, built as make build does.
func program(t *testing.T) string {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return place
}
