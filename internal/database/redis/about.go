package redis

import (
	"strconv"
	"strings"
	"time"

	"skerry/internal/database"
	"skerry/internal/install"
)

// About describes Redis Cluster to the laboratory and its documentation.
var About = database.About{
	Name: Name, New: func() database.Database { return New() }, Recipes: Recipes,
	Choices:  choices,
	Protocol: "redis",
	Row:      database.Row{Replicas: "yes", Smallest: "3 masters"},
	Suite:    database.Suite{Takes: 50 * time.Second},
	Smoke: database.Smoke{
		Text: "Does Redis Cluster work here? Three masters 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}

// ValkeyAbout describes Valkey to the laboratory and its documentation.
var ValkeyAbout = database.About{
	Name: Valkey, New: func() database.Database { return NewValkey() }, Recipes: ValkeyRecipes,
	Choices: choices,
	Row:     database.Row{Replicas: "yes", Smallest: "3 masters"},
	Smoke: database.Smoke{
		Text: "Does Valkey work here? Three masters 5 ms apart, YCSB's workload A on 1,000 records.",
	},
}

// choices offers shards with one copy, or with a replica that can take over.
func choices(p database.Placement) []database.Choice {
	out := []database.Choice{{
		Name: "one copy", Reads: database.ReadsLinearizable,
		GivesUp: "records of a site that is cut off are out of reach until it is back, and with the default options all others too",
	}, {
		Name: "one copy, partial", Options: database.Options{"cluster_require_full_coverage": false}, Reads: database.ReadsLinearizable,
		GivesUp: "records of a site that is cut off are out of reach until it is back",
	}}
	if n := len(p.Nodes); n >= 6 && n%2 == 0 {
		const lost = "those that the master had acknowledged and its replica had not got when it took over"
		out = append(out, database.Choice{
			Name: "a replica", Options: database.Options{"replicas": 1, "cluster_node_timeout": "5s"}, Loses: lost,
			GivesUp: "an isolated master returns old data until it detects the isolation; half of the nodes only stand by",
		}, database.Choice{
			Name: "one replica confirms", Options: database.Options{"replicas": 1, "wait": 1, "cluster_node_timeout": "5s"},
			Loses:   lost + ", seldom: Redis calls WAIT no guarantee",
			GivesUp: "a write waits for the replica's site; while that is away every write is in doubt",
		})
	}
	return out
}

// kind holds the differences between Redis and its fork Valkey.
type kind struct {
	name        string // in experiments
	server, cli string // programs
	recipes     []install.Recipe
	upgrades    map[string][]string // see database.Upgrades
	// ackedSlots is whether CLUSTER SETSLOT on a master waits for its replicas, which rules out scripts.
	ackedSlots bool
}

// Names of the databases.
const (
	Name   = "redis"
	Valkey = "valkey"
)

var (
	redisKind = kind{name: Name, server: "redis-server", cli: "redis-cli", recipes: Recipes,
		upgrades: map[string][]string{"7.0": {"8.0"}}}
	valkeyKind = kind{name: Valkey, server: "valkey-server", cli: "valkey-cli", recipes: ValkeyRecipes, ackedSlots: true,
		upgrades: map[string][]string{"8.0": {"9.1"}}}
)

func (k kind) claimsAtOnce(master view) bool {
	return !k.ackedSlots || len(master.replicas()) == 0
}

// major returns the first number of a version, or 0.
func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

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
