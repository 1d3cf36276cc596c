package ferretdb

import (
	_ "embed"
	"regexp"

	"skerry/internal/install"
)

// The modules and checksums of the programs. FerretDB 1's own command lacks a generated file in its module: the program
// in helper has the library.
var (
	//go:embed build.mod
	module []byte
	//go:embed build.sum
	sums []byte

	//go:embed helper/main.go
	source1 []byte
	//go:embed helper/helper.mod
	module1 []byte
	//go:embed helper/helper.sum
	sums1 []byte
)

// Recipe builds FerretDB 2 and installs PostgreSQL with the extension DocumentDB, where FerretDB 2 keeps its data.
var Recipe = install.Recipe{
	Name: Name, Series: "2.7", Released: "2025-11",
	Summary:  "FerretDB, MongoDB's protocol on PostgreSQL with DocumentDB (built with the Go toolchain)",
	Wanted:   install.ByConformance,
	Packages: []string{"postgresql-18/sid", "postgresql-client-18/sid", "postgresql-18-documentdb/sid"}, Closure: true,
	Prepare:     install.GoProgram{Name: Name, Package: "github.com/FerretDB/FerretDB/v2/cmd/ferretdb", Module: module, Sums: sums}.Build,
	Programs:    []string{Name, "postgres", "initdb"},
	Dirs:        []string{"usr/lib/postgresql/*/bin"},
	VersionArgs: []string{"--version"}, Version: findVersion,
}

// Recipes are the series of FerretDB, the default first.
var Recipes = []install.Recipe{Recipe, {
	Name: Name, Series: "1.24", Released: "2024-08", Ended: "2025-03",
	Summary:     "FerretDB, MongoDB's protocol on SQLite or PostgreSQL (built with the Go toolchain)",
	Wanted:      install.ByConformance,
	Prepare:     install.GoProgram{Name: Name, Main: source1, Module: module1, Sums: sums1}.Build,
	Programs:    []string{Name},
	VersionArgs: []string{"-version"}, Version: findVersion,
}}

// versionPattern matches "version: v2.7.0" of FerretDB 2 and "ferretdb v1.24.2" of the helper.
var versionPattern = regexp.MustCompile(`(?:version:|ferretdb) v([0-9]\S*)`)

func findVersion(output string) string {
	if m := versionPattern.FindStringSubmatch(output); m != nil {
		return m[1]
	}
	return ""
}
