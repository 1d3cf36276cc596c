// Package testkit is what tests of several packages share: the features a test
// needs from its machine, and scratch resources that clean up after themselves.
package testkit

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Feature is something a machine may lack and a test may need.
type Feature struct {
	// Name is how SKERRY_REQUIRE and the summary of skipped tests call it.
	Name string
	// Missing says why the machine lacks it, "" when it has it.
	Missing func() string
}

// Ability is something of the kernel or the machine that only the call tells which fails for
// lack of it.
type Ability string

// Need skips the test when the machine lacks a feature, with a reason that begins
// with "needs NAME:". A feature listed in SKERRY_REQUIRE (comma separated, as `make test`
// sets it where the feature was installed) fails the test instead of skipping it, so
// that a skip cannot hide rot.
func Need(t testing.TB, features ...Feature) {
	t.Helper()
	for _, f := range features {
		if why := f.Missing(); why != "" {
			lacks(t, f.Name, why)
		}
	}
}

// Lacks ends the test as Need does, after a call that failed because an ability is missing.
func Lacks(t testing.TB, a Ability, why error) {
	t.Helper()
	lacks(t, string(a), why.Error())
}

// Asked is the value of an environment variable without which a test does not run, since it
// takes minutes or makes something to look at. Where the variable is not set it skips the
// test, with a reason that begins with "asked for by VARIABLE:" and says what for.
func Asked(t testing.TB, variable, what string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Skipf("asked for by %s: %s", variable, what)
	}
	return value
}

func lacks(t testing.TB, name, why string) {
	t.Helper()
	if slices.Contains(required(), name) {
		t.Fatalf("needs %s, which SKERRY_REQUIRE says is here: %s", name, why)
	}
	t.Skipf("needs %s: %s", name, why)
}

// required is what SKERRY_REQUIRE lists.
func required() []string {
	return strings.Split(os.Getenv("SKERRY_REQUIRE"), ",")
}
