package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skerry/cmd/internal/cli"
	"skerry/internal/experiment"
)

// skerry runs a command line in this process.
func skerry(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestValidateCommand(t *testing.T) {
	const quickstart = "../../experiments/quickstart.yaml"
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("name: x\ntopology: azure8\ndatabase: redis\nworkload: {name: a, threds: 3}\nscale: -1\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr []string
	}{
		{"valid", []string{quickstart}, cli.ExitOK, []string{"quickstart.yaml is valid", "4 trials: workload a, c x scale 0.2, 1"}, nil},
		{"links", []string{quickstart, "--links"}, cli.ExitOK, []string{"36 links, round trips of", "Melbourne~Sydney", "routes: each packet"},
			nil},
		{"links that differ by direction",
			[]string{quickstart, "--links", "--set",
				"topology={nodes: [n1, n2], links: [{between: [n1, n2], rtt: 10ms, back: {bandwidth: 5mbit}}]}", "--set", "client=n1", "--set",
				"database=etcd"}, cli.ExitOK, []string{"n1 > n2       5ms      10ms   unlimited", "n2 > n1       5ms      10ms   5mbit"}, nil},
		{"too long an event", []string{quickstart, "--set", "events=[{at: 1s, for: 20s, kill: Pune}]", "--set", "assert=[goodput > 1/s]"},
			cli.ExitOK, []string{"event kill, at 1s for 20s, outlasts the trial of 12s", "asserts goodput > 1/s"}, nil},
		{"a link by its ends", []string{quickstart, "--set", "events=[{at: 1s, link_down: {of: [Sydnee~Pune]}}]"}, cli.ExitUsage, nil,
			[]string{`no link matches "Sydnee~Pune"`, `did you mean "Sydney~Pune"?`}},
		{"a link with a dash", []string{quickstart, "--set", "events=[{at: 1s, link_down: {of: [Sydney-Pune]}}]"}, cli.ExitUsage, nil,
			[]string{`there is no node or site "Sydney-Pune"`, `did you mean "Sydney~Pune"?`}},
		{"plan", []string{quickstart, "--plan", "--set", "repetitions=2"}, cli.ExitOK, []string{"ORDER  TRIAL  REPETITION  WORKLOAD  SCALE"},
			nil},
		{"fast", []string{quickstart, "--fast"}, cli.ExitOK, []string{"then 2s"}, nil},
		{"wrong", []string{quickstart, bad}, cli.ExitUsage, []string{"is valid"},
			[]string{"2 problems", bad + `:4:21: workload: unknown key "threds"; did you mean "threads"?`, bad + ":5:8: scale: -1 is too small",
				"1 of 2 files"}},
		{"set", []string{quickstart, "--set", "database.options.mastrs=3"}, cli.ExitUsage, nil,
			[]string{"--set database.options.mastrs=3: ", "masters"}},
		{"no file", nil, cli.ExitUsage, nil, []string{"missing arguments: skerry validate FILE..."}},
		{"missing file", []string{"nothing.yaml"}, cli.ExitUsage, nil, []string{"nothing.yaml: no such file"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := skerry(t, append([]string{"validate"}, tt.args...)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, part := range tt.stdout {
				if !strings.Contains(stdout, part) {
					t.Errorf("stdout lacks %q:\n%s", part, stdout)
				}
			}
			for _, part := range tt.stderr {
				if !strings.Contains(stderr, part) {
					t.Errorf("stderr lacks %q:\n%s", part, stderr)
				}
			}
		})
	}

	code, stdout, _ := skerry(t, "validate", "--json", quickstart, bad)
	var results []experiment.Validation
	if err := json.Unmarshal([]byte(stdout), &results); err != nil || code != cli.ExitUsage {
		t.Fatalf("exit code %d, %v: %s", code, err, stdout)
	}
	if !results[0].Valid || len(results[0].Plan) != 4 || results[1].Valid || len(results[1].Problems) != 2 ||
		results[1].Problems[0].Line != 4 {
		t.Errorf("%+v", results)
	}
}

// A valid file that cannot run here reports the missing program of the database or the client.
func TestValidateReportsMissingFeatures(t *testing.T) {
	for name, tt := range map[string]struct{ ends, want string }{
		"the database": {"client: {protocol: redis}\ninstall: {programs: [nosuch-database], advice: build it}\n", "nosuch-database"},
		"the client":   {"client: {program: [nosuch-client]}\n", "the client's program of exec:made"},
	} {
		file := filepath.Join(t.TempDir(), "made.yaml")
		text := "name: made\nserver: {start: exec made, up: \"true\"}\ncount: echo 0\nclear: \"true\"\n" + tt.ends
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		code, out, errs := skerry(t, "validate", "../../experiments/quickstart.yaml", "--set", "database={exec: "+file+"}")
		if code != cli.ExitOK || !strings.Contains(out, "note: run cannot start on this machine") || !strings.Contains(out, tt.want) {
			t.Errorf("%s: exit code %d\n%s%s", name, code, out, errs)
		}
	}
}

func TestSchemaCommand(t *testing.T) {
	code, stdout, _ := skerry(t, "schema")
	if code != cli.ExitOK || !json.Valid([]byte(stdout)) || !strings.Contains(stdout, "Skerry experiment") {
		t.Errorf("exit code %d: %.200s", code, stdout)
	}
}
