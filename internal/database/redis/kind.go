package redis

import (
	"regexp"
	"strconv"
	"strings"

	"skerry/internal/install"
)

// kind is what Redis and Valkey, which began as a copy of it, differ in.
type kind struct {
	name        string // as experiments call it
	server, cli string // programs
	recipe      install.Recipe
	// ackedSlots is whether CLUSTER SETSLOT of a master waits for its replicas, and so
	// cannot be a step of a script.
	ackedSlots bool
}

// Names of the databases.
const (
	Name   = "redis"
	Valkey = "valkey"
)

// Recipe installs Debian's Redis. The server program is in redis-tools: redis-server
// holds a link to it.
var Recipe = install.Recipe{
	Name:        Name,
	Summary:     "Redis Cluster (redis-server, redis-cli)",
	Wanted:      install.ByTests,
	Packages:    []string{"redis-server", "redis-tools", "libatomic1", "libjemalloc2", "liblzf1", "libssl3"},
	Programs:    []string{"redis-server", "redis-cli"},
	VersionArgs: []string{"--version"},
	Version:     versionIn(`server v=([0-9][^ ]*)`), // "Redis server v=7.0.15 sha=00000000:0 malloc=..."
}

// ValkeyRecipe installs Debian's Valkey, which bookworm has among its backports.
var ValkeyRecipe = install.Recipe{
	Name:    Valkey,
	Summary: "Valkey Cluster (valkey-server, valkey-cli)",
	Wanted:  install.ByConformance,
	Packages: []string{"valkey-server/bookworm-backports", "valkey-tools/bookworm-backports",
		"libatomic1", "libjemalloc2", "liblzf1", "libssl3"},
	Programs:    []string{"valkey-server", "valkey-cli"},
	VersionArgs: []string{"--version"},
	Version:     versionIn(`(?:Valkey )?server v=([0-9][^ ]*)`),
}

func versionIn(pattern string) func(string) string {
	p := regexp.MustCompile(pattern)
	return func(output string) string {
		if m := p.FindStringSubmatch(output); m != nil {
			return m[1]
		}
		return ""
	}
}

var (
	redisKind  = kind{name: Name, server: "redis-server", cli: "redis-cli", recipe: Recipe}
	valkeyKind = kind{name: Valkey, server: "valkey-server", cli: "valkey-cli", recipe: ValkeyRecipe, ackedSlots: true}
)

// claimsAtOnce is whether a master takes the ownership of many slots in one transaction.
func (k kind) claimsAtOnce(master view) bool {
	return !k.ackedSlots || len(master.replicas()) == 0
}

// major is the first number of a version, 0 when it has none.
func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}
