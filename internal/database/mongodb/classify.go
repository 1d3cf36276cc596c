package mongodb

import (
	"context"
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"skerry/internal/database/wire"
	"skerry/internal/load"
)

// Classes of errors beside those of package wire and MongoDB's own names in lower case.
const (
	classNoServer  = "no_server"     // no server that may do it was found in time
	classNotMaster = "not_primary"   // the server is no primary
	classStepping  = "state_change"  // it stopped being primary, or is shutting down, meanwhile
	classConcern   = "write_concern" // done, but not by as many members as was asked
)

// Codes of errors.
const (
	codeNotWritablePrimary     = 10107
	codeNotPrimaryNoSecondary  = 13435
	codePrimarySteppedDown     = 189
	codeInterruptedStateChange = 11602
	codeInterruptedAtShutdown  = 11600
	codeShutdownInProgress     = 91
	codeMaxTimeExpired         = 50
	codeDuplicateKey           = 11000
)

// classify turns an error of the driver into an outcome.
func classify(err error) error {
	var write mongo.WriteException
	var command mongo.CommandError
	var selection topology.ServerSelectionError
	var queue topology.WaitQueueTimeoutError
	var broken topology.ConnectionError
	switch {
	case errors.As(err, &selection):
		return load.Failed(classNoServer, "", err)
	case errors.As(err, &queue):
		return load.Failed(wire.Connect, "", err)
	case errors.As(err, &write):
		// Single writes: with an error of the write nothing was written.
		if len(write.WriteErrors) > 0 {
			return load.Failed("write_error", "", err)
		}
		return load.Unknown(classConcern, "", err)
	case errors.As(err, &command) && !command.HasErrorLabel("NetworkError"):
		return commandError(command, err)
	case errors.As(err, &broken) && strings.Contains(broken.Error(), "connection pool") || neverConnected(err):
		return load.Failed(wire.DialClass(err), "", err)
	case mongo.IsTimeout(err):
		return load.Unknown(wire.Timeout, "", err)
	case errors.Is(err, context.Canceled):
		return load.Unknown(wire.Canceled, "", err)
	}
	return load.Unknown(wire.Class(err), "", err)
}

// neverConnected tells whether a connection failed before there was one to send on.
func neverConnected(err error) bool {
	class := wire.Class(err)
	return class == wire.Refused || class == wire.Unreachable
}

// commandError is what the server answered. What interrupted a command says nothing
// of what it had done.
func commandError(e mongo.CommandError, err error) error {
	switch e.Code {
	case codeNotWritablePrimary, codeNotPrimaryNoSecondary:
		return load.Failed(classNotMaster, "", err)
	case codePrimarySteppedDown, codeInterruptedStateChange, codeInterruptedAtShutdown, codeShutdownInProgress:
		return load.Unknown(classStepping, "", err)
	case codeMaxTimeExpired:
		return load.Unknown(wire.Timeout, "", err)
	}
	class := strings.ToLower(e.Name)
	if class == "" {
		class = wire.Other
	}
	return load.Failed(class, "", err)
}
