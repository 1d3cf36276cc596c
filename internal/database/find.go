package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/install"
	"skerry/internal/machine/host"
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

// ErrUpgrade means that a cluster cannot be upgraded from one version to another member by member.
var ErrUpgrade = errors.New("no rolling upgrade")

// Upgradable is a database with several series.
type Upgradable interface{ Upgrades() Upgrades }

// Upgrades are the rolling upgrades that a database's makers support.
type Upgrades struct {
	Recipes []install.Recipe // the default first
	// Steps maps a series to the newer ones that run in one cluster with it. It is empty if there is
	// no rolling upgrade.
	Steps map[string][]string
	// Rule is what the makers support. It is the reason for refusing other steps.
	Rule string
}

// UpgradableCluster is a cluster whose members can be upgraded one by one.
type UpgradableCluster interface {
	// UpgradeOrder returns nodes in the order in which the makers recommend to upgrade them.
	UpgradeOrder(ctx context.Context, nodes []string) ([]string, error)
	// Upgrade ends a member gracefully and starts the programs of another installation on its data. It
	// is accepted when the old processes have ended, and complete when the database reports that the
	// member serves, has caught up and runs the new version.
	Upgrade(ctx context.Context, node host.Host, to Installation) (Change, error)
}

// CheckUpgrade returns why the members of a cluster cannot be upgraded one by one from a version to a
// series. An empty version is the default series.
func CheckUpgrade(d Database, version, to string) error {
	a, ok := d.(Upgradable)
	if !ok {
		return fmt.Errorf("%w: %s has no other series", ErrUpgrade, d.Name())
	}
	u := a.Upgrades()
	from, known, series := u.Recipes[0].Series, false, []string(nil)
	for _, r := range u.Recipes {
		if version != "" && matchesVersion(version, r.Series) {
			from = r.Series
		}
		known = known || r.Series == to
		series = append(series, r.Series)
	}
	order := slices.Compare(seriesNumbers(from), seriesNumbers(to))
	switch next := u.Steps[from]; {
	case !known:
		return advice.With(fmt.Errorf("%s %s: %w", d.Name(), to, ErrSeries), "use one of %s", strings.Join(series, ", "))
	case order == 0:
		return advice.With(fmt.Errorf("%w: %s %s is the running version", ErrUpgrade, d.Name(), to),
			"start with an older series: database: %s@SERIES", d.Name())
	case order > 0:
		return fmt.Errorf("%w from %s to %s: a server does not start on the directory of a newer version", ErrUpgrade, from, to)
	case slices.Contains(next, to):
		return nil
	case len(next) > 0:
		return advice.With(fmt.Errorf("%w from %s to %s: %s", ErrUpgrade, from, to, u.Rule), "upgrade to %s@%s first", d.Name(), next[0])
	}
	return fmt.Errorf("%w from %s to %s: %s", ErrUpgrade, from, to, u.Rule)
}

// seriesNumbers returns the numbers of a series such as 10.11.
func seriesNumbers(series string) (numbers []int) {
	for part := range strings.SplitSeq(series, ".") {
		n, _ := strconv.Atoi(part) // a recipe's series is numbers
		numbers = append(numbers, n)
	}
	return numbers
}
