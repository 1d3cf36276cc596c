package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"skerry/internal/testkit"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"skerry": func() {
			os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
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
