package hbase

import (
	"testing"

	"skerry/internal/database"
	"skerry/test/dbtest"
)

func TestConformance(t *testing.T) {
	leavesNothing(t)
	dbtest.Run(t, conformance())
}

func TestConformanceOfOtherSeries(t *testing.T) {
	leavesNothing(t)
	dbtest.RunOtherSeries(t, conformance())
}

func conformance() dbtest.Config {
	return dbtest.Config{
		About: About,
		Port:  portRegionServer, Upsert: true, Survives: true, LeavesAbruptly: true,
		// Fewer regions and a short session test the same in less time.
		Options: database.Options{"regions": 3, "zookeeper_session_timeout": "10s"},
		// HDFS considers a disk full early, because it needs space for whole blocks.
		DiskFull: 64 << 20, DiskOptions: database.Options{"storage": "directory"},
		BadOptions: []database.Options{{"regions": 0}, {"storage": "tape"}, {"replication": 4}, {"zookeeper_session_timeout": "1s"}},
	}
}
