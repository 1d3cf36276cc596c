package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"skerry/cmd/internal/cli"
	"skerry/internal/testkit"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		// With its signals: what waits for one alone, as a rootless lab's holder does, Go would end as
		// deadlocked where there is none to come and no C library.
		"skerry": func() { os.Exit(cli.Main(run)) },
	})
}

// TestScript runs the scenarios of testdata/script: each says what a person types and
// what they see.
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

// programs are what skerry install has.
func programs() (known []testkit.Feature) {
	for _, r := range recipes() {
		known = append(known, testkit.Installed(r))
	}
	return known
}
