package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Error numbers of MySQL and MariaDB servers.
const (
	errTooMany      = 1040
	errNotReady     = 1047 // Galera: not part of the primary component
	errShutdown     = 1053
	errNoColumn     = 1054
	errDuplicate    = 1062
	errDupColumn    = 1060
	errFull         = 1114
	errNoTable      = 1146
	errCommit       = 1180 // Got error ... during COMMIT
	errLockTimeout  = 1205
	errDeadlock     = 1213 // Galera's certification too
	errReadOnly     = 1290
	errEngine       = 1296 // NDB: got error ...
	errTemporary    = 1297 // NDB: got temporary error ...
	errInterrupted  = 1317
	errReadOnlyTx   = 1792
	errReadOnlyMode = 1836
	errKilled       = 1927
	errHook         = 3100 // Group Replication: a hook refused
	errRollback     = 3101 // Group Replication: rolled back while committing
	errSessionGone  = 3169
)

var words = map[uint16]string{
	errTooMany: "too_many_connections", errNotReady: "not_ready", errNoColumn: "unknown_column",
	errDuplicate: "duplicate", errFull: "full", errNoTable: "no_table", errLockTimeout: "lock_timeout",
	errDeadlock: "deadlock", errReadOnly: "read_only", errReadOnlyTx: "read_only", errReadOnlyMode: "read_only",
	errTemporary: "temporary",
}

// doubts are the server errors after which a write may have been done.
var doubts = map[uint16]string{
	errShutdown: "shutdown", errInterrupted: "interrupted", errKilled: "killed", errSessionGone: "killed", errCommit: "commit",
	errRollback: "rollback",
}

func serverError(addr string, e *mysqldriver.MySQLError) error {
	if w, ok := words[e.Number]; ok {
		return load.Failed(w, addr, e)
	}
	if w, ok := doubts[e.Number]; ok {
		return load.Unknown(w, addr, e)
	}
	switch e.Number {
	case errHook:
		// Before a statement the hook refuses it. During a commit the group may have the write.
		if strings.Contains(e.Message, "before_commit") {
			return load.Unknown("hook", addr, e)
		}
		return load.Failed("read_only", addr, e)
	case errEngine:
		if engineDoubts[engineNumber(e.Message)] {
			return load.Unknown("cluster_failure", addr, e)
		}
		return load.Failed("engine", addr, e)
	}
	return load.Failed(fmt.Sprintf("error_%d", e.Number), addr, e)
}

// engineDoubts are NDB errors with an unknown outcome. The server reports 4009 as 157.
var engineDoubts = map[string]bool{"157": true, "4008": true, "4009": true, "4012": true}

// engineNumber returns the number in "Got error 4009 'Cluster Failure' from NDBCLUSTER".
func engineNumber(message string) string {
	_, after, _ := strings.Cut(message, "error ")
	number, _, _ := strings.Cut(after, " ")
	return number
}

// needsOtherMember reports whether the next operation should go to another member.
func needsOtherMember(err error) bool {
	var e *mysqldriver.MySQLError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Number {
	case errNotReady, errReadOnly, errReadOnlyMode, errHook, errRollback, errShutdown, errTooMany, errEngine:
		return true
	}
	return false
}

// lostError is the outcome of an operation whose connection broke with cause.
func lostError(addr string, err, cause error) error {
	if cause == nil {
		cause = err
	}
	class := database.ErrorClass(cause)
	switch {
	case errors.Is(err, driver.ErrBadConn): // nothing was sent
		return load.Failed(class, addr, cause)
	case errors.Is(err, context.Canceled):
		class = database.ClassCanceled
	}
	return load.Unknown(class, addr, cause)
}

// Sentinel errors.
var (
	// ErrProperty marks an invalid client property.
	ErrProperty = errors.New("bad property")
	// ErrNoTemplate means that no empty data directory could be created.
	ErrNoTemplate = errors.New("creating an empty data directory")

	// errNone means that no server runs.
	errNone = errors.New("no server runs")
	// errReadOnlyClient means a write through a client that reads one member's copy.
	errReadOnlyClient = errors.New("a client of one member's own copy only reads")
)
