package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/database/all"
	"skerry/internal/database/custom"
	"skerry/internal/load"
)

// openDatabase returns the client constructor of a database, or of the null database.
func openDatabase(name string) (func(context.Context, map[string]string) (load.Client, error), error) {
	if name == load.NullName {
		return new(load.NullDatabase).Open, nil
	}
	if db, ok := findDatabase(name); ok {
		return db.Open, nil
	}
	known := append(slices.Sorted(maps.Keys(all.Databases())), load.NullName)
	return nil, advice.With(fmt.Errorf("unknown database %q", name), "databases are %s", strings.Join(known, ", "))
}

// findDatabase returns the database that a client connects to.
func findDatabase(name string) (database.Database, bool) {
	if strings.HasPrefix(name, custom.Prefix) {
		name = database.Exec // its clients read all settings from their properties
	}
	db, ok := all.Databases()[name]
	return db, ok
}
