package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"skerry/internal/load"
	"skerry/test/dbtest"
	"skerry/test/testkit/testhost"
)

// BenchmarkClient compares the client's reads with a loop over the driver.
func BenchmarkClient(b *testing.B) {
	d := New()
	c := startCluster(b, d, testhost.Loopback(b, 1), nil)
	client := open(b, d, c.Properties())
	var fields []load.Field
	for i := range 10 {
		fields = append(fields, load.Field{Name: fmt.Sprint("field", i), Value: make([]byte, 100)})
	}
	if err := client.Insert(b.Context(), "", "user1", fields); err != nil {
		b.Fatal(err)
	}
	conn, err := pgx.Connect(b.Context(), "postgres://postgres@"+client.write.addr+"/postgres?sslmode=disable")
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	var dst []load.Field
	b.Run("skerry", func(b *testing.B) {
		dbtest.CPU(b, func(ctx context.Context) (err error) {
			dst, err = client.Read(ctx, "", "user1", nil, dst[:0])
			return err
		})
	})
	b.Run("pgx", func(b *testing.B) {
		dbtest.CPU(b, func(ctx context.Context) error {
			var key string
			var f [10][]byte
			return conn.QueryRow(ctx, "SELECT * FROM usertable WHERE ycsb_key = $1", "user1").
				Scan(&key, &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7], &f[8], &f[9])
		})
	})
}
