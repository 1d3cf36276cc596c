package redis

import (
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/dbtest"
)

func TestConformance(t *testing.T) {
	dbtest.Run(t, dbtest.Config{
		About: About, Port: defaultPort, Upsert: true,
		Options: writeBeforeReply, Survives: true, DiskFull: 4 << 20,
		BadOptions: []database.Options{{"masters": 2}, {"port": "x"}, {"appendfsync": "sometimes"}},
	})
}
