package ferretdb_test

import (
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/dbtest"
	"skerry/internal/database/ferretdb"
	"skerry/internal/database/postgres"
	"skerry/internal/testkit"
)

func TestConformance(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: ferretdb.About,
		Port:  27017, Survives: true,
		BadOptions: []database.Options{{"backend": "mysql"}}, DiskFull: 160 << 20,
	})
}

func TestConformanceOfSeries1(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: ferretdb.About, Version: "1.24",
		Port: 27017, Survives: true, Rows: 60, // it reads all to find one
		BadOptions: []database.Options{{"backend": "mysql"}}, DiskFull: 4 << 20,
	})
}

func TestConformanceOfSeries1PostgreSQL(t *testing.T) {
	testkit.Need(t, testkit.Installed(postgres.Recipe))
	dbtest.Run(t, dbtest.Config{
		About: ferretdb.About, Version: "1.24", Variant: "postgresql",
		Port: 27017, Survives: true, Rows: 60, // it reads all to find one
		Options: database.Options{"backend": "postgresql"}, DiskFull: 128 << 20,
	})
}
