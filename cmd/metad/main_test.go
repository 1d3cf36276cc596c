package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"skerry/cmd/internal/cli"
	"skerry/internal/docgen/manual"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"metad": func() { os.Exit(cli.Main(run)) }})
}

// TestScript runs the scenarios of testdata/script.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector delays the end of every command by a second
			return nil
		},
	})
}

// The pages of docs/commands match the commands.
func TestCommandPagesAreCurrent(t *testing.T) {
	for name, want := range manual.NewPages(newRoot(cli.New(nil, nil, os.Stderr))).Pages {
		got, err := os.ReadFile(filepath.Join("../../docs/commands", name))
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Errorf("docs/commands/%s is outdated (%v), run make docs: -want +got:\n%s", name, err, diff)
		}
	}
}
