package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"skerry/internal/load"
)

func benchmarkRead(b *testing.B, client *client) {
	var dst []load.Field
	var err error
	for b.Loop() {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		if dst, err = client.Read(ctx, "", "user1", nil, dst[:0]); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
}

// benchmarkDriver is the loop that one would write by hand.
func benchmarkDriver(b *testing.B, addr string) {
	conn, err := pgx.Connect(b.Context(), "postgres://postgres@"+addr+"/postgres?sslmode=disable")
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	for b.Loop() {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		rows, err := conn.Query(ctx, "SELECT * FROM usertable WHERE ycsb_key = $1", "user1")
		if err != nil {
			b.Fatal(err)
		}
		for rows.Next() {
			var key string
			var f [10][]byte
			if err := rows.Scan(&key, &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7], &f[8], &f[9]); err != nil {
				b.Fatal(err)
			}
		}
		if rows.Err() != nil {
			b.Fatal(rows.Err())
		}
		cancel()
	}
}
