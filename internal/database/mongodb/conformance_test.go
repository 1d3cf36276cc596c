package mongodb_test

import (
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/mongodb"
	"skerry/test/dbtest"
)

// TestConformance runs if a mongod is installed.
func TestConformance(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: mongodb.About,
		Port:  27017, Survives: true, LeavesAbruptly: true, DiskFull: 384 << 20,
		Options:    database.Options{"write_concern": "majority", "election_timeout": "2s"},
		BadOptions: []database.Options{{"shards": 3}, {"write_concern": "most"}},
	})
}

// TestConformanceSharded runs if a mongod and a mongos are installed. A chunk returns to a former shard only after that
// has deleted it, by default 15 minutes later.
func TestConformanceSharded(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: mongodb.About, Variant: "sharded",
		Port: 27017, Survives: true, DiskFull: 768 << 20,
		Options: database.Options{"topology": "sharded", "config_servers": 1, "write_concern": "majority", "orphan_cleanup_delay": "1s"},
	})
}
