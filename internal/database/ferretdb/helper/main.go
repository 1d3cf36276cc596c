//go:build ignore

// Command ferretdb is FerretDB as one process: the MongoDB wire protocol in front of
// SQLite or PostgreSQL. FerretDB's own command cannot be built from its module, which
// lacks a generated file; its library can.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

const module = "github.com/FerretDB/FerretDB"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ferretdb:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("ferretdb", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:27017", "address to serve the MongoDB wire protocol on")
	handler := flags.String("handler", "sqlite", "what keeps the data: sqlite or postgresql")
	sqlite := flags.String("sqlite-url", "", "a folder as a file: URL that ends with a slash")
	postgres := flags.String("postgresql-url", "", "a postgres: URL")
	version := flags.Bool("version", false, "print the version and end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version {
		fmt.Println("ferretdb", libraryVersion())
		return nil
	}
	f, err := ferretdb.New(&ferretdb.Config{
		Listener: ferretdb.ListenerConfig{TCP: *listen}, Handler: *handler, SQLiteURL: *sqlite, PostgreSQLURL: *postgres,
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return f.Run(ctx)
}

func libraryVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == module {
				return d.Version
			}
		}
	}
	return "unknown"
}
