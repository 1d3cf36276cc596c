package postgres_test

import (
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/postgres"
	"skerry/test/dbtest"
)

func TestConformance(t *testing.T) { dbtest.Run(t, conformance()) }

func TestConformanceOfOtherSeries(t *testing.T) { dbtest.RunOtherSeries(t, conformance()) }

// One standby confirms each write, so that no write is lost with the primary.
func conformance() dbtest.Config {
	return dbtest.Config{
		About: postgres.About,
		Port:  5432, Survives: true, LeavesAbruptly: true, DiskFull: 128 << 20,
		Options:    database.Options{"synchronous_standby_names": "ANY 1 (*)"},
		BadOptions: []database.Options{{"synchronous_commit": "sometimes"}, {"shared_buffers": "lots"}},
	}
}
