package database

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/install"
)

// ErrVersion says that the version that was asked for is not the one that is there.
var ErrVersion = errors.New("another version than was asked for")

// ErrUnknown says that there is no database of a name.
var ErrUnknown = errors.New("no such database")

// Exec is the name of the kind of database that a user describes in a file.
const Exec = "exec"

// Describer is that kind: a database in the list of all that stands for those which
// files describe.
type Describer interface {
	// Describe returns the database of a file with that text.
	Describe(path string, text []byte) (Database, error)
}

// Describe has the one described that a file describes, by the Describer among all.
func Describe(all map[string]Database, file string, text []byte) (Database, error) {
	if d, ok := all[Exec].(Describer); ok {
		return d.Describe(file, text)
	}
	return nil, fmt.Errorf("%w: nothing here understands %s", ErrUnknown, file)
}

// Lookup finds the database of a name among all.
func Lookup(all map[string]Database, name string) (Database, error) {
	d, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	return d, nil
}

// Versioned is a database of which several versions can be installed side by side.
type Versioned interface {
	// FindVersion is Find of a version ("4.1"); "" is the default one.
	FindVersion(version, from string) (Installation, error)
}

// Locate finds an installation of a database: at from, else in the cache, else in PATH.
// Of a version, when that is given, it must be: "7", "7.0" and "7.0.15" are all met by
// 7.0.15.
func Locate(d Database, version, from string) (Installation, error) {
	var in Installation
	var err error
	if v, ok := d.(Versioned); ok {
		in, err = v.FindVersion(version, from)
	} else {
		in, err = d.Find(from)
	}
	if err == nil && !matchesVersion(in.Version, version) {
		err = advice.With(fmt.Errorf("%s %s is %w: %s", d.Name(), in.Version, ErrVersion, version),
			"give a build of that version with --from, or leave the version out")
	}
	return in, err
}

func matchesVersion(version, asked string) bool {
	return asked == "" || version == asked || strings.HasPrefix(version, asked+".") || strings.HasPrefix(version, asked+"-")
}

// Find is what the Find of a database with a recipe consists of.
func Find(r install.Recipe, from string) (Installation, error) {
	return FindVersion([]install.Recipe{r}, "", from)
}

// FindVersion is what the FindVersion of a Versioned database consists of: its recipes
// differ in their series, and the first is the default.
func FindVersion(recipes []install.Recipe, version, from string) (Installation, error) {
	chosen, found := recipes[0], version == ""
	var series []string
	for _, r := range recipes {
		series = append(series, r.Series)
		if !found && r.Series != "" && matchesVersion(version, r.Series) {
			chosen, found = r, true
		}
	}
	if !found && from == "" {
		return Installation{}, advice.With(fmt.Errorf("there is no %s %s", chosen.Name, version), "there are %s; another one can be given with --from", strings.Join(series, ", "))
	}
	dir, err := install.DefaultDir()
	if err != nil {
		return Installation{}, err
	}
	in, err := install.Store{Dir: dir}.Find(context.Background(), chosen, from)
	return Installation{Database: in.Database, Version: in.Version, Dir: in.Dir, Programs: in.Programs, Env: in.Env}, err
}
