package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Classes of errors beside those of package failure and PostgreSQL's own codes
// ("sqlstate_53100").
const (
	classNoPrimary = "no_primary" // no server that was reached takes writes
	classReadOnly  = "read_only"  // the server is a standby
	classStarting  = "starting"   // starting or shutting down: no connections yet, or any more
	classShutdown  = "shutdown"   // the server ended the connection
	classFull      = "disk_full"
	classConflict  = "conflict" // with another transaction, or with recovery on a standby
	classCrowded   = "too_many_connections"
)

// codes are classes of PostgreSQL's error codes.
var codes = map[string]string{
	"25006": classReadOnly, "57P03": classStarting, "57P01": classShutdown, "57P02": classShutdown,
	"53100": classFull, "53300": classCrowded, "40001": classConflict, "40P01": classConflict,
}

// severityError is that of an error after which the connection goes on: the statement,
// a transaction of its own, was rolled back.
const severityError = "ERROR"

// classify turns an error of an operation into an outcome.
func classify(addr string, err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		class := codes[e.Code]
		if class == "" {
			class = "sqlstate_" + e.Code
		}
		if e.SeverityUnlocalized == severityError {
			return load.Failed(class, addr, err)
		}
		// A server that shuts down may have committed and lost the time to say so.
		return load.Unknown(class, addr, err)
	}
	if pgconn.SafeToRetry(err) {
		return load.Failed(database.ErrorClass(err), addr, err)
	}
	return load.Unknown(database.ErrorClass(err), addr, err)
}

// dialError turns a failure to connect into an outcome.
func dialError(addr string, err error) error {
	var e *pgconn.PgError
	class := database.DialErrorClass(err)
	if errors.As(err, &e) && codes[e.Code] != "" {
		class = codes[e.Code]
	}
	return load.Failed(class, addr, fmt.Errorf("connecting to postgres at %s: %w", addr, err))
}
