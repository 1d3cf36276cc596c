package ferretdb_test

import (
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/ferretdb"
	"skerry/test/dbtest"
)

func TestConformance(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: ferretdb.About,
		Port:  27017, Survives: true,
		BadOptions: []database.Options{{"port": 0}}, DiskFull: 160 << 20,
	})
}
