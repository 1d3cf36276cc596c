package galera

import (
	"skerry/internal/database"
	"skerry/internal/install"
)

var (
	programs = []string{"mariadbd", "mariadb-install-db"}
	optional = []string{"rsync", "mariabackup"}
)

// Recipe installs MariaDB 11.8 with Galera 4 from Debian's sid, with the programs that copy the state of a member.
var Recipe = install.Recipe{
	Name: Name, Series: "11.8", Released: "2025-06", Ended: "2028-06",
	Summary: "MariaDB with Galera (mariadbd, libgalera_smm)",
	Wanted:  install.ByTests,
	Packages: []string{"mariadb-server-core/sid", "mariadb-server/sid", "mariadb-backup/sid", "mariadb-client-core/sid",
		"galera-4/sid", "rsync/sid", "socat/sid"},
	Closure:  true,
	Programs: programs, Optional: optional,
	VersionArgs: []string{"--no-defaults", "--version"}, Version: findVersion,
}

// Recipes are the series of MariaDB, the default first. 10.11 is from Debian 12.
var Recipes = []install.Recipe{Recipe, {
	Name: Name, Series: "10.11", Released: "2023-02", Ended: "2028-02",
	Summary: "MariaDB with Galera (mariadbd, libgalera_smm)",
	Wanted:  install.ByConformance,
	Packages: []string{
		"mariadb-server-core", "mariadb-server", "mariadb-backup", "mariadb-client-core", "galera-4", "rsync", "socat",
		"libaio1", "libbsd0", "libedit2", "libncurses6", "libnuma1", "libpopt0", "libssl3", "liburing2", "libwrap0", "libxxhash0",
	},
	Programs: programs, Optional: optional,
	VersionArgs: []string{"--no-defaults", "--version"}, Version: findVersion,
}}

// findVersion matches "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for ...".
var findVersion = install.MatchVersion(`Ver ([0-9][0-9.]*)-MariaDB`)

// Upgrades implements database.Upgradable: none between the series that can be installed, by
// https://mariadb.com/docs/server/server-management/install-and-upgrade-mariadb/upgrading.
func (*Galera) Upgrades() database.Upgrades {
	return database.Upgrades{Recipes: Recipes, Rule: "MariaDB supports rolling upgrades of Galera by one long-term series at a time, " +
		"and 11.4, which Debian does not have, is between them"}
}
