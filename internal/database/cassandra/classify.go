package cassandra

import (
	"context"
	"errors"
	"strings"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Classes of errors that Cassandra reports, and the driver's own.
const (
	classUnavailable   = "unavailable"   // too few replicas alive: not begun
	classOverloaded    = "overloaded"    // not begun
	classBootstrapping = "bootstrapping" // not begun
	classWriteTimeout  = "write_timeout" // too few replicas answered in time
	classWriteFailure  = "write_failure" // a replica failed
	classReadTimeout   = "read_timeout"
	classReadFailure   = "read_failure"
	classInvalid       = "invalid"
	classAuth          = "auth"
	classServer        = "server_error"
	classNoNode        = "no_connection" // to any member: not sent
	classNoStream      = "no_stream"     // a connection with all its requests outstanding: not sent
)

// replyClasses are the classes of what a member answered, and whether a write that was
// answered so certainly did not happen on any replica. A read that was answered at all
// has ended.
var replyClasses = map[int]struct {
	class   string
	notDone bool
}{
	gocql.ErrCodeServer:          {classServer, false},
	gocql.ErrCodeProtocol:        {classInvalid, true},
	gocql.ErrCodeCredentials:     {classAuth, true},
	gocql.ErrCodeUnavailable:     {classUnavailable, true},
	gocql.ErrCodeOverloaded:      {classOverloaded, true},
	gocql.ErrCodeBootstrapping:   {classBootstrapping, true},
	gocql.ErrCodeWriteTimeout:    {classWriteTimeout, false},
	gocql.ErrCodeWriteFailure:    {classWriteFailure, false},
	gocql.ErrCodeCDCWriteFailure: {classWriteFailure, false},
	gocql.ErrCodeCASWriteUnknown: {classWriteTimeout, false},
	gocql.ErrCodeReadTimeout:     {classReadTimeout, true},
	gocql.ErrCodeReadFailure:     {classReadFailure, true},
	gocql.ErrCodeSyntax:          {classInvalid, true},
	gocql.ErrCodeUnauthorized:    {classAuth, true},
	gocql.ErrCodeInvalid:         {classInvalid, true},
	gocql.ErrCodeConfig:          {classInvalid, true},
	gocql.ErrCodeUnprepared:      {classInvalid, true},
}

// classifyError is what became of an operation that ended with an error of the driver.
func classifyError(err error, node *gocql.HostInfo, write bool) error {
	var reply gocql.RequestError
	at := nodeName(node)
	switch {
	case errors.As(err, &reply):
		a, known := replyClasses[reply.Code()]
		if !known {
			a.class = classServer
		}
		if a.notDone || !write {
			return load.Failed(a.class, at, err)
		}
		return load.Unknown(a.class, at, err)
	case errors.Is(err, gocql.ErrNoConnections), errors.Is(err, gocql.ErrUnavailable), errors.Is(err, gocql.ErrSessionClosed):
		return load.Failed(classNoNode, at, err)
	case errors.Is(err, gocql.ErrNoStreams):
		return load.Failed(classNoStream, at, err)
	case errors.Is(err, gocql.ErrTimeoutNoResponse), errors.Is(err, context.DeadlineExceeded):
		return load.Unknown(database.ClassTimeout, at, err)
	case errors.Is(err, gocql.ErrConnectionClosed):
		return load.Unknown(database.ClassEOF, at, err)
	}
	return load.Unknown(database.ErrorClass(err), at, err)
}

// nodeName is a member's address and port, "" where the driver had none to ask.
func nodeName(h *gocql.HostInfo) string {
	if h == nil {
		return ""
	}
	return strings.TrimPrefix(h.ConnectAddressAndPort(), "/")
}
