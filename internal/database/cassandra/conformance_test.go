package cassandra

import (
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/dbtest"
)

func TestConformance(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		New:     func() database.Database { return New() },
		Port:    defaultPort,
		Options: database.Options{"ring_delay": "4s", "replication_factor": 3},
		BadOptions: []database.Options{
			{"heap": "64MiB"}, {"replication_factor": 4}, {"strategy": "nearby"}, {"read_consistency": "most"},
			{"seeds": 4}, {"num_tokens": 0}, {"port": 7000}, {"ring_delay": "100ms"}, {"commitlog_sync": "sometimes"},
			{"memtable_space": "200MiB"},
		},
		Survives: true, LeavesAbruptly: true, Upsert: true, BlindDelete: true, Unordered: true,
	})
}
