package database

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/install"
)

// ErrVersion means that the installed version is not the requested one.
var ErrVersion = errors.New("another version than was asked for")

// ErrSeries is returned for a series that a database does not have.
var ErrSeries = errors.New("no such series")

// ErrUnknown means that no database has that name.
var ErrUnknown = errors.New("no such database")

// Exec is the name of the kind of database that a user describes in a file.
const Exec = "exec"

// Describer is the kind Exec in the list of all databases: it creates the databases that files describe.
type Describer interface {
	// Describe returns the database that a file with that text describes.
	Describe(path string, text []byte) (Database, error)
}

// Describe returns the database that a file describes, with the Describer among all.
func Describe(all map[string]Database, file string, text []byte) (Database, error) {
	if d, ok := all[Exec].(Describer); ok {
		return d.Describe(file, text)
	}
	return nil, fmt.Errorf("%w: nothing here understands %s", ErrUnknown, file)
}

// Lookup returns the database with a name.
func Lookup(all map[string]Database, name string) (Database, error) {
	d, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	return d, nil
}

// Locate finds an installation at from, else in the cache, else in PATH. A version "7" or "7.0" matches 7.0.15.
func Locate(d Database, version, from string) (Installation, error) {
	in, err := d.Find(version, from)
	if err == nil && !matchesVersion(in.Version, version) {
		err = advice.With(fmt.Errorf("%s %s is %w: %s", d.Name(), in.Version, ErrVersion, version),
			"give a build of that version with --from, or leave the version out")
	}
	return in, err
}

func matchesVersion(version, asked string) bool {
	return asked == "" || version == asked || strings.HasPrefix(version, asked+".") || strings.HasPrefix(version, asked+"-")
}

// Find implements Database.Find for databases with recipes, one for each series, the default first.
func Find(recipes []install.Recipe, version, from string) (Installation, error) {
	chosen, found := recipes[0], version == "" || recipes[0].Series == ""
	var series []string
	for _, r := range recipes {
		series = append(series, r.Series)
		if !found && matchesVersion(version, r.Series) {
			chosen, found = r, true
		}
	}
	if !found && from == "" {
		return Installation{}, advice.With(fmt.Errorf("%s %s: %w", chosen.Name, version, ErrSeries),
			"use one of %s, or give a build of that version with --from", strings.Join(series, ", "))
	}
	dir, err := install.DefaultDir()
	if err != nil {
		return Installation{}, err
	}
	in, err := install.Store{Dir: dir}.Find(context.Background(), chosen, from)
	return Installation{Database: in.Database, Version: in.Version, Dir: in.Dir, Programs: in.Programs, Env: in.Env}, err
}
