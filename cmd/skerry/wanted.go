package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"skerry/cmd/internal/cli"
	"skerry/internal/database"
	"skerry/internal/database/all"
	"skerry/internal/install"
)

// newWanted is hidden: it serves the Makefile and the scripts, which so know no database's
// name.
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
		Short: "List what targets of the Makefile install and run",
		Long: "List what targets of the Makefile install and run, a word a line:\n\n" +
			"  tests           what make test installs and requires\n" +
			"  slow            what make slow does\n" +
			"  conformance     what make conformance does, besides what is there\n" +
			"  request         databases that it tests where they are there\n" +
			"  suites          packages of databases that make test requires, the longest first\n" +
			"  suites-slow     those that make slow requires\n" +
			"  suites-alone    packages whose conformance suites run one at a time\n" +
			"  suites-waiting  packages whose conformance suites run beside all others",
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

// wantedBy tells what a target installs: those of lesser ones are among that.
func wantedBy(target install.Wanted) func(install.Recipe) bool {
	return func(r install.Recipe) bool { return r.Wanted >= target }
}

func onRequest(r install.Recipe) bool { return r.Wanted == install.OnRequest }

func suitesOf(target install.Wanted) func() []string {
	return func() []string {
		return suites(func(d database.About) bool { return slices.ContainsFunc(d.Recipes, wantedBy(target)) })
	}
}

// suites are packages of databases, those whose suite takes longest first.
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
