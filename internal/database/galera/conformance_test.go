package galera

import (
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/test/dbtest"
)

func TestConformance(t *testing.T) { dbtest.Run(t, conformance()) }

func TestConformanceOfOtherSeries(t *testing.T) { dbtest.RunOtherSeries(t, conformance()) }

// All clients write to one member: writes to the same row through several members conflict by design.
func conformance() dbtest.Config {
	return dbtest.Config{
		About: About, Port: mysql.Port,
		BadOptions: []database.Options{{"wsrep_sync_wait": 16}, {"wsrep_sst_method": "scp"}, {"port": groupPort}},
		Properties: map[string]string{mysql.PropMember: mysql.First},
		Survives:   true, LeavesAbruptly: true, DiskFull: 192 << 20,
	}
}
