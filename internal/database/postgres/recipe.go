package postgres

import (
	"skerry/internal/database"
	"skerry/internal/install"
)

var programs = []string{"postgres", "initdb", "pg_basebackup", "pg_rewind"}

// Recipe installs PostgreSQL 18 from Debian's sid.
var Recipe = install.Recipe{
	Name: Name, Series: "18", Released: "2025-09", Ended: "2030-11",
	Summary:  "PostgreSQL, primary and streaming standbys",
	Wanted:   install.ByConformance,
	Packages: []string{"postgresql-18/sid", "postgresql-client-18/sid"}, Closure: true,
	Programs: programs, Dirs: []string{"usr/lib/postgresql/*/bin"},
	VersionArgs: []string{"--version"}, Version: findVersion,
}

// Recipes are the series of PostgreSQL, the default first. The libraries are missing in a minimal Debian.
var Recipes = []install.Recipe{Recipe, {
	Name: Name, Series: "15", Released: "2022-10", Ended: "2027-11",
	Summary: "PostgreSQL, primary and streaming standbys",
	Wanted:  install.ByConformance,
	Packages: []string{"postgresql-15", "postgresql-client-15", "libpq5", "libicu72", "libxml2", "libxslt1.1",
		"libldap-2.5-0", "libsasl2-2", "liblz4-1", "libzstd1", "libssl3", "libbsd0", "libedit2",
		"libgssapi-krb5-2", "libkrb5-3", "libk5crypto3", "libkrb5support0", "libkeyutils1"},
	Programs: programs, Dirs: []string{"usr/lib/postgresql/*/bin"},
	VersionArgs: []string{"--version"}, Version: findVersion,
}}

// findVersion matches "postgres (PostgreSQL) 15.18 (Debian ...)".
var findVersion = install.MatchVersion(`\(PostgreSQL\) ([0-9][^\s]*)`)

// Upgrades implements database.Upgradable: there is no rolling upgrade, by
// https://www.postgresql.org/docs/current/upgrading.html.
func (*Postgres) Upgrades() database.Upgrades {
	return database.Upgrades{Recipes: Recipes, Rule: "a server does not start on the directory of another major version, and streaming " +
		"replication needs the same one; PostgreSQL provides pg_upgrade, which stops the cluster, and logical replication to a second cluster"}
}
