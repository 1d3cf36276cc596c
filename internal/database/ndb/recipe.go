package ndb

import (
	"regexp"

	"skerry/internal/install"
)

// Name is how experiments call it.
const Name = "mysql-ndb"

// Recipe takes the SQL node from Debian's sid, whose mysqld has NDB's storage engine built
// in, and compiles the rest, which no package has, from the source of the same release. All
// runs with the C library that comes along.
var Recipe = install.Recipe{
	Name:     Name,
	Summary:  "MySQL NDB Cluster (ndb_mgmd, ndbmtd, ndb_mgm, mysqld)",
	Packages: []string{"mysql-server-core/sid", "mysql-client-core/sid"},
	Closure:  true,
	Build: &install.Build{
		Source: "mysql-source/sid", Cost: "3 to 10 minutes of two cores", Disk: 3 << 30,
		Tools:   []string{"cmake", "ninja|make", "g++|clang++", "pkg-config", "strip"},
		Hint:    "install them, with the headers that the build asks for: sudo apt-get install cmake ninja-build g++ pkg-config libssl-dev libncurses-dev libtirpc-dev rpcsvc-proto",
		Compile: compile,
	},
	Programs:    []string{"ndbmtd", "ndb_mgmd", "ndb_mgm", "mysqld"},
	VersionArgs: []string{"--no-defaults", "--version"},
	Version: func(output string) string {
		if m := versionPattern.FindStringSubmatch(output); m != nil {
			return m[1]
		}
		return ""
	},
}

// versionPattern finds the version in "MySQL distrib mysql-8.0.44 ndb-8.0.44, for Linux (x86_64)",
// and in "ndbmtd  Ver 8.0.44-cluster for Linux on x86_64 (MySQL Cluster Community Server - GPL)".
var versionPattern = regexp.MustCompile(`(?:ndb-|Ver )([0-9]+\.[0-9]+\.[0-9]+)`)
