package galera

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"

	"skerry/internal/database"
	"skerry/internal/database/mysql"
	"skerry/internal/load"
	"skerry/test/testkit"
	"skerry/test/testkit/testhost"
)

func begin(b *testing.B, n int) (*Galera, database.Cluster) {
	b.Helper()
	testkit.Need(b, testkit.Installed(Recipe))
	g, nodes := New(), testhost.Loopback(b, n)
	in, err := g.Find("", "")
	if err != nil {
		b.Fatal(err)
	}
	c, err := g.Start(b.Context(), database.Env{Nodes: nodes, Control: nodes[0], Installation: in})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return g, c
}

// BenchmarkForm forms a cluster of eight.
func BenchmarkForm(b *testing.B) {
	for b.Loop() {
		began := time.Now()
		_, c := begin(b, 8)
		b.ReportMetric(time.Since(began).Seconds(), "s/form")
		if err := c.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkClient compares the client with a loop over the driver.
func BenchmarkClient(b *testing.B) {
	g, c := begin(b, 1)
	client, err := g.Open(b.Context(), c.Properties())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	var record []load.Field
	for i := range 10 {
		record = append(record, load.Field{Name: fmt.Sprint("field", i), Value: make([]byte, 100)})
	}
	if err := client.Insert(b.Context(), "", "user1", record); err != nil {
		b.Fatal(err)
	}
	config := mysqldriver.NewConfig()
	config.Net, config.Addr, config.User, config.DBName = "tcp", c.Properties()[mysql.PropHosts], mysql.User, mysql.Schema
	connector, err := mysqldriver.NewConnector(config)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := connector.Connect(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	prepare := func(text string) driver.Stmt {
		s, err := conn.(driver.ConnPrepareContext).PrepareContext(b.Context(), text)
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	read := prepare("SELECT * FROM usertable WHERE YCSB_KEY = ?").(driver.StmtQueryContext)
	update := prepare("UPDATE usertable SET field3 = ? WHERE YCSB_KEY = ?").(driver.StmtExecContext)
	ctx, row := context.Background(), make([]driver.Value, 11)
	var dst []load.Field
	for _, bench := range []struct {
		name string
		do   func() error
	}{
		{"read/client", func() (err error) { dst, err = client.Read(ctx, "", "user1", nil, dst[:0]); return err }},
		{"read/driver", func() error {
			rows, err := read.QueryContext(ctx, []driver.NamedValue{{Ordinal: 1, Value: "user1"}})
			if err != nil {
				return err
			}
			for err == nil {
				err = rows.Next(row)
			}
			if err != io.EOF {
				return err
			}
			return rows.Close()
		}},
		{"update/client", func() error { return client.Update(ctx, "", "user1", record[3:4]) }},
		{"update/driver", func() error {
			_, err := update.ExecContext(ctx, []driver.NamedValue{{Ordinal: 1, Value: record[3].Value}, {Ordinal: 2, Value: "user1"}})
			return err
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			before := cpu()
			for b.Loop() {
				if err := bench.do(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-us/op")
		})
	}
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
