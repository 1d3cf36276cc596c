package testkit

import (
	"os"
	"slices"

	"skerry/internal/install"
)

// Installed is a database or a program: what a recipe describes, in the cache of `skerry
// install` or in PATH. Of a database with several versions it is the default one.
func Installed(r install.Recipe) Feature {
	return Feature{r.Name, func() string {
		if why := NotAsked(r, r.Name); why != "" {
			return why
		}
		dir, err := install.DefaultDir()
		if err != nil {
			return err.Error()
		}
		_, _, err = install.Store{Dir: dir}.Current(r.Key())
		switch {
		case err == nil:
			return ""
		case len(r.Programs) == 0:
			return err.Error()
		}
		return program(r.Programs[0])()
	}}
}

// NotAsked says why tests of what is called name are not run: the command that runs them does without, and
// SKERRY_REQUIRE lists the features to test, without this one. Without a list all that is installed is
// tested.
func NotAsked(r install.Recipe, name string) string {
	if os.Getenv("SKERRY_REQUIRE") == "" || r.Wanted == install.ByTests || slices.Contains(required(), name) {
		return ""
	}
	return "not asked for; make slow tests more databases, make conformance all"
}
