package metadata_test

import (
	"os"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/metadata"
	"skerry/test/dbtest"
	"skerry/test/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.MainWithPrograms(m, "metad")) }

func TestConformance(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: metadata.About,
		Port:  8080, Survives: true, LeavesAbruptly: true, KillJoiner: time.Millisecond,
		DiskFull:   144 << 20, // a file of the log takes 72 MB, a full one 64 MB
		BadOptions: []database.Options{{"servers": "two"}, {"replicas": 4}, {"peer_port": 8090}},
	})
}
