package mongodb

import (
	"context"
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Classes of errors beside those of package failure and MongoDB's own names in lower case.
const (
	classNoServer  = "no_server"     // no server that may do it was found in time
	classNotMaster = "not_primary"   // the server is no primary
	classStepping  = "state_change"  // it stopped being primary, or is shutting down, meanwhile
	classConcern   = "write_concern" // done, but not by as many members as was asked
	classShard     = "shard_lost"    // a mongos has no answer of a shard
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
	codeFailedPreference       = 133 // FailedToSatisfyReadPreference: a mongos found no primary
	codeHostUnreachable        = 6
	codeNetworkTimeout         = 89
	codeExceededTimeLimit      = 262
	codeSocketException        = 9001
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
		return load.Failed(database.ClassConnectTimeout, "", err)
	case errors.As(err, &write):
		// Single writes: with an error of the write nothing was written, unless it is a
		// mongos that has lost the shard on the way.
		if len(write.WriteErrors) > 0 {
			return classifyCode(write.WriteErrors[0].Code, "write_error", err)
		}
		return load.Unknown(classConcern, "", err)
	case errors.As(err, &command) && !command.HasErrorLabel("NetworkError"):
		return classifyCommand(command, err)
	case errors.As(err, &broken) && strings.Contains(broken.Error(), "connection pool") || neverConnected(err):
		return load.Failed(database.DialErrorClass(err), "", err)
	case mongo.IsTimeout(err):
		return load.Unknown(database.ClassTimeout, "", err)
	case errors.Is(err, context.Canceled):
		return load.Unknown(database.ClassCanceled, "", err)
	}
	return load.Unknown(database.ErrorClass(err), "", err)
}

// neverConnected tells whether a connection failed before there was one to send on.
func neverConnected(err error) bool {
	class := database.ErrorClass(err)
	return class == database.ClassRefused || class == database.ClassUnreachable
}

// classifyCommand is what the server answered.
func classifyCommand(e mongo.CommandError, err error) error {
	class := strings.ToLower(e.Name)
	if class == "" {
		class = database.ClassOther
	}
	return classifyCode(int(e.Code), class, err)
}

// classifyCode is an error with a code of the server's, of class other where it tells that
// nothing was done. What interrupted a command says nothing of what it had done.
func classifyCode(code int, other string, err error) error {
	switch code {
	case codeNotWritablePrimary, codeNotPrimaryNoSecondary:
		return load.Failed(classNotMaster, "", err)
	case codeFailedPreference:
		return load.Failed(classNoServer, "", err)
	case codePrimarySteppedDown, codeInterruptedStateChange, codeInterruptedAtShutdown, codeShutdownInProgress:
		return load.Unknown(classStepping, "", err)
	case codeHostUnreachable, codeSocketException:
		return load.Unknown(classShard, "", err)
	case codeMaxTimeExpired, codeNetworkTimeout, codeExceededTimeLimit:
		return load.Unknown(database.ClassTimeout, "", err)
	}
	return load.Failed(other, "", err)
}
