package ferretdb

import (
	"context"
	_ "embed"

	"skerry/internal/install"
)

// The modules of the program and their checksums.
var (
	//go:embed build.mod
	module []byte
	//go:embed build.sum
	sums []byte
)

// Recipe builds FerretDB 2 and installs PostgreSQL with the extension DocumentDB, where FerretDB 2 keeps its data.
var Recipe = install.Recipe{
	Name: Name, Series: "2.7", Released: "2025-11",
	Summary:  "FerretDB, MongoDB's protocol on PostgreSQL with DocumentDB (built with the Go toolchain)",
	Wanted:   install.ByConformance,
	Packages: []string{"postgresql-18/sid", "postgresql-client-18/sid", "postgresql-18-documentdb/sid"}, Closure: true,
	Prepare:     prepare,
	Programs:    []string{Name, "postgres", "initdb"},
	Dirs:        []string{"usr/lib/postgresql/*/bin"},
	VersionArgs: []string{"--version"}, Version: install.MatchVersion(`version: v([0-9]\S*)`),
}

// prepare makes the links that Debian's packages make when they are configured, or that stand for a path in a library,
// and builds FerretDB.
func prepare(ctx context.Context, root string, progress func(string)) error {
	err := install.Link(root, map[string]string{
		"usr/share/postgresql/18/extension/postgis.control": "postgis-3.control",
		"usr/lib/*-linux-gnu/pg_documentdb_core.so":         "../postgresql/18/lib/pg_documentdb_core.so",
	})
	if err != nil {
		return err
	}
	return install.GoProgram{
		Name: Name, Package: "github.com/FerretDB/FerretDB/v2/cmd/ferretdb", Module: module, Sums: sums,
	}.Build(ctx, root, progress)
}
