package cassandra

import (
	"testing"

	"skerry/internal/database"
	"skerry/test/dbtest"
)

// The suite uses three replicas, so that a member that leaves abruptly loses no row. The suite's timeout, set by
// SKERRY_TIMEOUT, bounds starts.
func conformance() dbtest.Config {
	return dbtest.Config{
		About:   About,
		Port:    defaultPort,
		Options: database.Options{"ring_delay": "4s", "phi_convict_threshold": 5, "start_timeout": "1h"},
		BadOptions: []database.Options{
			{"heap": "64MiB"}, {"replication_factor": 4}, {"strategy": "nearby"}, {"read_consistency": "most"},
			{"seeds": 4}, {"num_tokens": 0}, {"port": 7000}, {"ring_delay": "100ms"}, {"commitlog_sync": "sometimes"},
			{"memtable_space": "200MiB"}, {"version": "4"},
		},
		Survives: true, LeavesAbruptly: true, Upsert: true, BlindDelete: true, Unordered: true,
		DiskFull: 160 << 20,
	}
}

func TestConformance(t *testing.T) { dbtest.Run(t, conformance()) }

func TestConformanceOfOtherSeries(t *testing.T) { dbtest.RunOtherSeries(t, conformance()) }
