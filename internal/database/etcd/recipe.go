package etcd

import (
	_ "embed"

	"skerry/internal/database"
	"skerry/internal/install"
)

// mainPackage is built in a module of its own, because go install refuses a module with replace directives.
const mainPackage = "go.etcd.io/etcd/server/v3"

var (
	//go:embed build.mod
	module []byte
	//go:embed build.sum
	sums []byte
	//go:embed build-3.6.mod
	module36 []byte
	//go:embed build-3.6.sum
	sums36 []byte
)

// Recipe builds etcd 3.7, which no release of Debian has.
var Recipe = install.Recipe{
	Name: Name, Series: "3.7", Released: "2026-07",
	Summary:     "etcd (built with the Go toolchain)",
	Wanted:      install.ByTests,
	Prepare:     install.GoProgram{Name: "etcd", Package: mainPackage, Module: module, Sums: sums}.Build,
	Programs:    []string{"etcd"},
	VersionArgs: []string{"--version"},
	Version:     findVersion,
}

// Recipes are the series of etcd, the default first. etcd.io supports the two newest minor versions.
var Recipes = []install.Recipe{
	Recipe,
	{ // the step of a rolling upgrade from 3.5 to 3.7
		Name: Name, Series: "3.6", Released: "2025-05",
		Summary: "etcd (built with the Go toolchain)", Wanted: install.ByConformance,
		Prepare:  install.GoProgram{Name: "etcd", Package: mainPackage, Module: module36, Sums: sums36}.Build,
		Programs: []string{"etcd"}, VersionArgs: []string{"--version"}, Version: findVersion,
	},
	{
		Name: Name, Series: "3.5", Released: "2021-06", Ended: "2026-07",
		Summary: "etcd", Wanted: install.ByConformance,
		Packages: []string{"etcd-server/sid"}, Closure: true,
		Programs: []string{"etcd"}, VersionArgs: []string{"--version"}, Version: findVersion,
	},
	{
		Name: Name, Series: "3.4", Released: "2019-08", Ended: "2025-05",
		Summary: "etcd", Wanted: install.ByConformance,
		Packages: []string{"etcd-server"},
		Programs: []string{"etcd"}, VersionArgs: []string{"--version"}, Version: findVersion,
	},
}

// findVersion matches "etcd Version: 3.4.23".
var findVersion = install.MatchVersion(`etcd Version: ([0-9][^\s]*)`)

// Upgrades implements database.Upgradable, by the policy of
// https://etcd.io/docs/v3.6/upgrades/upgrading-etcd/.
func (*Etcd) Upgrades() database.Upgrades {
	return database.Upgrades{
		Recipes: Recipes, Steps: map[string][]string{"3.4": {"3.5"}, "3.5": {"3.6"}, "3.6": {"3.7"}},
		Rule: "etcd supports upgrades by one minor version at a time",
	}
}
