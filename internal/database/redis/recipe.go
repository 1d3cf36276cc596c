package redis

import (
	"regexp"

	"skerry/internal/install"
)

// Recipe installs Redis from Debian's sid: no stable release of Debian has Redis 8.
var Recipe = install.Recipe{
	Name:        Name,
	Series:      "8.0",
	Released:    "2025-05",
	Summary:     "Redis Cluster (redis-server, redis-cli)",
	Wanted:      install.ByTests,
	Packages:    []string{"redis-server/sid", "redis-tools/sid"},
	Closure:     true,
	Programs:    []string{"redis-server", "redis-cli"},
	VersionArgs: []string{"--version"},
	Version:     redisVersion,
}

// Recipes are the series of Redis, the default first. Debian 12's redis-server program is in redis-tools.
var Recipes = []install.Recipe{Recipe, {
	Name:        Name,
	Series:      "7.0",
	Released:    "2022-04",
	Ended:       "2024-07",
	Summary:     "Redis Cluster (redis-server, redis-cli)",
	Wanted:      install.ByTests,
	Packages:    []string{"redis-server", "redis-tools", "libatomic1", "libjemalloc2", "liblzf1", "libssl3"},
	Programs:    []string{"redis-server", "redis-cli"},
	VersionArgs: []string{"--version"},
	Version:     redisVersion,
}}

// ValkeyRecipe installs Valkey from Debian's sid.
var ValkeyRecipe = install.Recipe{
	Name:        Valkey,
	Series:      "9.1",
	Released:    "2026-05",
	Summary:     "Valkey Cluster (valkey-server, valkey-cli)",
	Wanted:      install.ByConformance,
	Packages:    []string{"valkey-server/sid", "valkey-tools/sid"},
	Closure:     true,
	Programs:    []string{"valkey-server", "valkey-cli"},
	VersionArgs: []string{"--version"},
	Version:     valkeyVersion,
}

// ValkeyRecipes are the series of Valkey, the default first. Debian 12 has 8.0 among its backports.
var ValkeyRecipes = []install.Recipe{ValkeyRecipe, {
	Name:     Valkey,
	Series:   "8.0",
	Released: "2024-09",
	Summary:  "Valkey Cluster (valkey-server, valkey-cli)",
	Wanted:   install.ByConformance,
	Packages: []string{"valkey-server/bookworm-backports", "valkey-tools/bookworm-backports",
		"libatomic1", "libjemalloc2", "liblzf1", "libssl3"},
	Programs:    []string{"valkey-server", "valkey-cli"},
	VersionArgs: []string{"--version"},
	Version:     valkeyVersion,
}}

var (
	redisVersion  = versionIn(`server v=([0-9][^ ]*)`) // "Redis server v=7.0.15 sha=00000000:0 malloc=..."
	valkeyVersion = versionIn(`(?:Valkey )?server v=([0-9][^ ]*)`)
)

func versionIn(pattern string) func(string) string {
	p := regexp.MustCompile(pattern)
	return func(output string) string {
		if m := p.FindStringSubmatch(output); m != nil {
			return m[1]
		}
		return ""
	}
}
