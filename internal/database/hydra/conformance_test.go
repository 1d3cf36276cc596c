package hydra_test

import (
	"os"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/hydra"
	"skerry/test/dbtest"
	"skerry/test/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.MainWithPrograms(m, "hydra")) }

func TestConformance(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: hydra.About,
		Port:  7070, Survives: true, LeavesAbruptly: true, DiskFull: 8 << 20, DiskOptions: database.Options{"max_log": "2MiB"},
		BadOptions: []database.Options{{"reads": "dirty"}, {"ack": "never"}, {"clouds": "region"}, {"backend": "oracle"}, {"peer_port": 7070}, {"through": "door"}, {"through": "wallet", "port": 7000}},
	})
}
