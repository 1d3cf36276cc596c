package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"skerry/internal/database"
)

var _ database.Handwritten = (*Postgres)(nil)

// Handwritten implements database.Handwritten: a SELECT with pgx of the first member.
func (*Postgres) Handwritten(ctx context.Context, properties map[string]string) (func(context.Context, string) error, func() error, error) {
	host, _, _ := strings.Cut(properties[PropHosts], ",")
	conn, err := pgx.Connect(ctx, "postgres://postgres@"+host+"/postgres?sslmode=disable")
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to postgres: %w", err)
	}
	var name string
	var f [10][]byte
	read := func(ctx context.Context, key string) error {
		return conn.QueryRow(ctx, "SELECT * FROM usertable WHERE ycsb_key = $1", key).
			Scan(&name, &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7], &f[8], &f[9])
	}
	return read, func() error { return conn.Close(context.WithoutCancel(ctx)) }, nil
}
