package etcd_test

import (
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/etcd"
	"skerry/test/dbtest"
)

func TestConformance(t *testing.T) { dbtest.Run(t, conformance()) }

func TestConformanceOfOtherSeries(t *testing.T) { dbtest.RunOtherSeries(t, conformance()) }

func conformance() dbtest.Config {
	return dbtest.Config{
		About: etcd.About,
		Port:  2379, Survives: true, LeavesAbruptly: true,
		DiskFull:   192 << 20, // two files of the log take 64 MB each
		BadOptions: []database.Options{{"election_timeout": "10ms"}, {"read": "stale"}},
	}
}
