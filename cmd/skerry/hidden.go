package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/database/all"
	"skerry/internal/install"
)

// newMoved returns a hidden command that names the program that replaced skerry old. It is removed in the next version.
func newMoved(old, program string) *cobra.Command {
	return &cobra.Command{
		Use:                old,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return advice.With(fmt.Errorf("skerry %s is now the program %s", old, program),
				"run `%s` with the same arguments: %s --help", program, program)
		},
	}
}

// newWanted returns a hidden command for the Makefile and scripts, so that they contain no names of databases.
func newWanted(a *app) *cobra.Command {
	lists := map[string]func() []string{
		"tests":          func() []string { return install.Names(recipes(), wantedBy(install.ByTests)) },
		"slow":           func() []string { return install.Names(recipes(), wantedBy(install.BySlow)) },
		"conformance":    func() []string { return install.Names(all.Recipes(), wantedBy(install.ByConformance)) },
		"request":        func() []string { return install.Names(all.Recipes(), onRequest) },
		"suites":         suitesOf(install.ByTests),
		"suites-slow":    suitesOf(install.BySlow),
		"suites-alone":   func() []string { return suites(func(d database.About) bool { return d.Suite.Alone }) },
		"suites-waiting": func() []string { return suites(func(d database.About) bool { return d.Suite.Waits }) },
	}
	return &cobra.Command{
		Use:   "wanted LIST",
		Short: "List the databases and suites of Makefile targets",
		Long: "List the databases and suites of Makefile targets, one per line:\n" +
			"\n" +
			"  tests           installed and required by make test\n" +
			"  slow            installed and required by make slow\n" +
			"  conformance     installed by make conformance\n" +
			"  request         tested by make conformance if installed\n" +
			"  suites          database packages required by make test, the longest first\n" +
			"  suites-slow     database packages required by make slow\n" +
			"  suites-alone    packages whose conformance suites run one at a time\n" +
			"  suites-waiting  packages whose conformance suites run in parallel with all others",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			list, ok := lists[args[0]]
			if !ok {
				return fmt.Errorf("%w: unknown list %q", cli.ErrUsage, args[0])
			}
			for _, name := range list() {
				fmt.Fprintln(a.Out, name)
			}
			return nil
		},
	}
}

// wantedBy returns a filter for the recipes that a target installs. Larger targets include smaller ones.
func wantedBy(target install.Wanted) func(install.Recipe) bool {
	return func(r install.Recipe) bool { return r.Wanted >= target }
}

func onRequest(r install.Recipe) bool { return r.Wanted == install.OnRequest }

func suitesOf(target install.Wanted) func() []string {
	return func() []string {
		return suites(func(d database.About) bool { return slices.ContainsFunc(d.Recipes, wantedBy(target)) })
	}
}

// suites returns the packages of matching databases, the longest suite first.
func suites(of func(database.About) bool) []string {
	registry := all.Registry()
	slices.SortStableFunc(registry, func(x, y database.About) int { return cmp.Compare(y.Suite.Takes, x.Suite.Takes) })
	var packages []string
	for _, d := range registry {
		if of(d) && !slices.Contains(packages, d.Package()) {
			packages = append(packages, d.Package())
		}
	}
	return packages
}
