package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"skerry/cmd/internal/cli"
	"skerry/test/testkit"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		// With signals: Go would end a process that waits only for a signal, like the holder of a rootless lab, as
		// deadlocked without cgo.
		"skerry": func() { os.Exit(cli.Main(run)) },
	})
}

// TestScript runs the scenarios of testdata/script: commands of a user and their output.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", Condition: testkit.Condition(programs()...),
		Setup: func(e *testscript.Env) error {
			// Under the race detector every command would sleep for a second before it ends.
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
	})
}

// programs are those of skerry install.
func programs() (known []testkit.Feature) {
	for _, r := range recipes() {
		known = append(known, testkit.Installed(r))
	}
	return known
}
