package redis

import (
	"skerry/internal/install"
)

// Recipe installs Redis from Debian's sid: no stable release of Debian has Redis 8.
var Recipe = redisRecipe("8.0", "2025-05", "", true, "redis-server/sid", "redis-tools/sid")

// Recipes are the series of Redis, the default first. Debian 12's redis-server program is in redis-tools.
var Recipes = []install.Recipe{
	Recipe,
	redisRecipe("7.0", "2022-04", "2024-07", false, "redis-server", "redis-tools", "libatomic1", "libjemalloc2", "liblzf1", "libssl3"),
}

// ValkeyRecipe installs Valkey from Debian's sid.
var ValkeyRecipe = valkeyRecipe("9.1", "2026-05", true, "valkey-server/sid", "valkey-tools/sid")

// ValkeyRecipes are the series of Valkey, the default first. Debian 12 has 8.0 among its backports.
var ValkeyRecipes = []install.Recipe{
	ValkeyRecipe,
	valkeyRecipe("8.0", "2024-09", false, "valkey-server/bookworm-backports", "valkey-tools/bookworm-backports",
		"libatomic1", "libjemalloc2", "liblzf1", "libssl3"),
}

func redisRecipe(series, released, ended string, closure bool, packages ...string) install.Recipe {
	return install.Recipe{
		Name: Name, Series: series, Released: released, Ended: ended, Summary: "Redis Cluster (redis-server, redis-cli)",
		Wanted: install.ByTests, Packages: packages, Closure: closure,
		Programs: []string{"redis-server", "redis-cli"}, VersionArgs: []string{"--version"}, Version: redisVersion,
	}
}

func valkeyRecipe(series, released string, closure bool, packages ...string) install.Recipe {
	return install.Recipe{
		Name: Valkey, Series: series, Released: released, Summary: "Valkey Cluster (valkey-server, valkey-cli)",
		Wanted: install.ByConformance, Packages: packages, Closure: closure,
		Programs: []string{"valkey-server", "valkey-cli"}, VersionArgs: []string{"--version"}, Version: valkeyVersion,
	}
}

var (
	redisVersion  = install.MatchVersion(`server v=([0-9][^ ]*)`) // "Redis server v=7.0.15 sha=00000000:0 malloc=..."
	valkeyVersion = install.MatchVersion(`(?:Valkey )?server v=([0-9][^ ]*)`)
)
