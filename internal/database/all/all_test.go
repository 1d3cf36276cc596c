package all

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/install"
)

// The declarations of databases must match their folders. Missing parts fail here, or in package docgen, whose files
// are generated from the registry.
func TestRegistry(t *testing.T) {
	names, folders := make(map[string]bool), make(map[string]bool)
	for _, a := range Registry() {
		folder := path.Base(a.Package())
		folders[folder] = true
		if names[a.Name] || a.New().Name() != a.Name {
			t.Errorf("%s: the name is another's, or the database calls itself %s", a.Name, a.New().Name())
		}
		names[a.Name] = true
		for _, r := range a.Recipes {
			if r.Name != a.Name || r.Summary == "" {
				t.Errorf("%s: a recipe of %q, %q", a.Name, r.Key(), r.Summary)
			}
		}
		if a.Suite.Alone && a.Suite.Waits {
			t.Errorf("%s: wrong class: the suite either loads the machine or mostly waits", a.Name)
		}
		conformance(t, a, filepath.Join("..", folder))
	}
	described, err := filepath.Glob("../*/about.go")
	if err != nil || len(described) == 0 {
		t.Fatal(described, err)
	}
	for _, file := range described {
		if folder := filepath.Base(filepath.Dir(file)); !folders[folder] {
			t.Errorf("internal/database/%s is not registered", folder)
		}
	}
}

// TestUpgrades checks that declared upgrades lead from each series to a newer one, and that a
// database without any says why.
func TestUpgrades(t *testing.T) {
	for _, a := range Registry() {
		d := a.New()
		u, ok := d.(database.Upgradable)
		if !ok {
			if len(a.Recipes) > 1 {
				t.Errorf("%s has several series and declares no upgrades", a.Name)
			}
			continue
		}
		for from, targets := range u.Upgrades().Steps {
			for _, to := range targets {
				if err := database.CheckUpgrade(d, from, to); err != nil {
					t.Errorf("%s: %v", a.Name, err)
				}
				if err := database.CheckUpgrade(d, to, from); !errors.Is(err, database.ErrUpgrade) {
					t.Errorf("%s from %s to %s: %v, want database.ErrUpgrade", a.Name, to, from, err)
				}
			}
		}
		first, last := a.Recipes[0].Series, a.Recipes[len(a.Recipes)-1].Series
		if len(u.Upgrades().Steps) == 0 && (u.Upgrades().Rule == "" || database.CheckUpgrade(d, last, first) == nil) {
			t.Errorf("%s: no upgrade and no reason for that", a.Name)
		}
	}
}

// conformance searches the suite of a database in its folder: a function whose name begins with TestConformance.
func conformance(t *testing.T, a database.About, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(parsed.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && strings.HasPrefix(f.Name.Name, "TestConformance")
		}) {
			return
		}
	}
	t.Errorf("%s: no conformance test in %s", a.Name, folder)
}

// Every argument of skerry install has a recipe, and make test installs some of them.
func TestInstalled(t *testing.T) {
	tested := install.Names(Recipes(), func(r install.Recipe) bool { return r.Wanted == install.ByTests })
	if len(tested) == 0 {
		t.Error("make test tests no database")
	}
	all := install.Names(Recipes(), func(install.Recipe) bool { return true })
	if want := []string{"cassandra", "cassandra@4.1"}; !slices.Equal(all[len(all)-2:], want) {
		t.Errorf("names %v, want them to end with %v", all, want)
	}
}

// Databases described by users find the client of each protocol.
func TestProtocols(t *testing.T) {
	known := make(builtin)
	for _, a := range Registry() {
		known[a.Name] = a.New()
	}
	protocols := known.Protocols()
	if !slices.IsSorted(protocols) || len(slices.Compact(slices.Clone(protocols))) != len(protocols) {
		t.Errorf("protocols %v: want them sorted, each once", protocols)
	}
	for _, p := range protocols {
		if _, ok := known.Protocol(p); !ok {
			t.Errorf("no client of %s", p)
		}
	}
	if d, ok := known.Protocol(""); ok {
		t.Errorf("the client of an unknown protocol is %v", d.Name())
	}
}

// Every documented setting is accepted by its database.
func TestChoices(t *testing.T) {
	for _, a := range Registry() {
		if a.Choices == nil {
			continue
		}
		for _, n := range []int{1, 3, 5, 6, 8} {
			place := database.Placement{}
			for i := range n {
				place.Nodes = append(place.Nodes, fmt.Sprintf("n%d", i+1))
			}
			place.Near, place.Site = place.Nodes[n-1], "S"
			if n < a.New().Capabilities().MinNodes {
				continue
			}
			names := map[string]bool{}
			for _, c := range a.Choices(place) {
				if err := a.New().Check(n, c.Options); err != nil {
					t.Errorf("%s, %s, on %d nodes: %v", a.Name, c.Name, n, err)
				}
				if names[c.Name] || c.Name == "" || c.GivesUp == "" {
					t.Errorf("%s: the choice %+v", a.Name, c)
				}
				names[c.Name] = true
			}
		}
	}
}
