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
		New:  func() database.Database { return mongodb.New() },
		Port: 27017, Survives: true, LeavesAbruptly: true,
		Options:    database.Options{"write_concern": "majority", "election_timeout": "2s"},
		BadOptions: []database.Options{{"shards": 3}, {"write_concern": "most"}},
	})
}

// TestConformanceSharded runs wherever a mongod and a mongos are found.
func TestConformanceSharded(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		New: func() database.Database { return mongodb.New() }, Variant: "sharded",
		Options: database.Options{"topology": "sharded", "config_servers": 1},
	})
}
