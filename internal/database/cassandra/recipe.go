package cassandra

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/database"
	"skerry/internal/install"
	"skerry/internal/machine/files"
)

//go:embed jars-5.0.lock
var jars50 string

//go:embed jars-4.1.lock
var jars41 string

var java = install.Java{Min: 17, Max: 17}

// Recipes say how Cassandra is installed; the first is the default version.
func Recipes() []install.Recipe {
	return []install.Recipe{
		{Name: Name, Series: "5.0", Summary: "Apache Cassandra 5.0", Wanted: install.BySlow, Jars: jars50, Java: java},
		{Name: Name, Series: "4.1", Summary: "Apache Cassandra 4.1", Wanted: install.ByConformance, Jars: jars41, Java: java},
	}
}

func series() []string {
	var names []string
	for _, r := range Recipes() {
		names = append(names, r.Series)
	}
	return names
}

// supported tells whether a version ("4.1", "4.1.10") is one of a series.
func supported(version string) bool {
	return slices.ContainsFunc(series(), func(s string) bool { return version == s || strings.HasPrefix(version, s+".") })
}

// Patterns of agents, in the folder lib of an installation.
const (
	// jamm measures objects; Cassandra sizes its memtables by it.
	jammPattern = "jamm-*.jar"
	// jolokia answers questions about the server over HTTP.
	jolokiaPattern = "jolokia-*-javaagent.jar"
)

// libraries is what of an installation a server is started with.
type libraries struct {
	java, classpath string
	jamm, jolokia   string
}

func librariesOf(ctx context.Context, on files.System, in database.Installation) (libraries, error) {
	lib := filepath.Join(in.Dir, "lib")
	l := libraries{java: in.Programs["java"], classpath: filepath.Join(lib, "*")}
	for pattern, path := range map[string]*string{jammPattern: &l.jamm, jolokiaPattern: &l.jolokia} {
		found := files.Glob(ctx, on, filepath.Join(lib, pattern))
		if len(found) == 0 {
			err := fmt.Errorf("the installation of cassandra in %s lacks %s", in.Dir, pattern)
			return l, advice.With(err, "put the jar into its folder lib; skerry install cassandra has it")
		}
		*path = found[0]
	}
	return l, nil
}

// Upgrades implements database.Upgradable, by the section "Upgrading" of Cassandra's NEWS.txt.
func (*Cassandra) Upgrades() database.Upgrades {
	return database.Upgrades{
		Recipes: Recipes(), Steps: map[string][]string{"4.1": {"5.0"}}, Rule: "Cassandra supports upgrades from 4.0 or 4.1 to 5.0",
	}
}
