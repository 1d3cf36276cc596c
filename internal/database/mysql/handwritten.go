package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// Handwritten is database.Handwritten for the databases of the family: a prepared SELECT on
// one connection of the driver, without database/sql.
func (d *Driver) Handwritten(ctx context.Context, properties map[string]string) (func(context.Context, string) error, func() error, error) {
	s, err := parseSettings(properties)
	if err != nil {
		return nil, nil, err
	}
	config := mysqldriver.NewConfig()
	config.Net, config.User, config.Passwd, config.DBName = "tcp", s.user, s.password, s.schema
	config.Addr, _, _ = strings.Cut(s.hosts, ",")
	connector, err := mysqldriver.NewConnector(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to %s: %w", d.Kind, err)
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to %s: %w", d.Kind, err)
	}
	text := "SELECT * FROM usertable WHERE YCSB_KEY = ?"
	statement, err := conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("preparing %q: %w", text, err), conn.Close())
	}
	var row []driver.Value
	read := func(ctx context.Context, key string) error {
		rows, err := statement.(driver.StmtQueryContext).QueryContext(ctx, []driver.NamedValue{{Ordinal: 1, Value: key}})
		if err != nil {
			return err
		}
		if row == nil {
			row = make([]driver.Value, len(rows.Columns()))
		}
		for err == nil {
			err = rows.Next(row)
		}
		if err != io.EOF {
			return errors.Join(err, rows.Close())
		}
		return rows.Close()
	}
	return read, func() error { return errors.Join(statement.Close(), conn.Close()) }, nil
}
