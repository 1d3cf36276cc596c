package mongodb_test

import (
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/dbtest"
	"skerry/internal/database/mongodb"
)

// TestConformance runs wherever a mongod is found.
func TestConformance(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: mongodb.About,
		Port:  27017, Survives: true, LeavesAbruptly: true, DiskFull: 384 << 20,
		Options:    database.Options{"write_concern": "majority", "election_timeout": "2s"},
		BadOptions: []database.Options{{"shards": 3}, {"write_concern": "most"}},
	})
}

// TestConformanceSharded runs wherever a mongod and a mongos are found. A chunk goes back to a
// shard that it has left only when that has deleted it, which by default it does 15 minutes later.
func TestConformanceSharded(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: mongodb.About, Variant: "sharded",
		Port: 27017, Survives: true, DiskFull: 768 << 20,
		Options: database.Options{"topology": "sharded", "config_servers": 1, "write_concern": "majority", "orphan_cleanup_delay": "1s"},
	})
}
