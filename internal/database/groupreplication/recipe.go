package groupreplication

import (
	"regexp"

	"skerry/internal/install"
)

// Name is how experiments call it.
const Name = "mysql-group-replication"

// Recipe installs MySQL from Debian's sid beside the system: no stable release of Debian
// has it. All that it depends on comes along, the C library included.
var Recipe = install.Recipe{
	Name:        Name,
	Summary:     "MySQL with Group Replication (mysqld, group_replication.so)",
	Wanted:      install.ByConformance,
	Packages:    []string{"mysql-server-core/sid", "mysql-client-core/sid"},
	Closure:     true,
	Programs:    []string{"mysqld"},
	VersionArgs: []string{"--no-defaults", "--version"},
	Version: func(output string) string {
		if m := versionPattern.FindStringSubmatch(output); m != nil {
			return m[1]
		}
		return ""
	},
}

// versionPattern finds the version in "/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 (Debian)".
// MariaDB, which has a mysqld too, says so.
var versionPattern = regexp.MustCompile(`Ver ([0-9]+\.[0-9]+\.[0-9]+)(?:-[0-9A-Za-z.~+]+)? for`)
