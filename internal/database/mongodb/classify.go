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

// Error classes, in addition to those of package database and MongoDB's own names in lower case.
const (
	classNoServer  = "no_server"     // no suitable server was found in time
	classNotMaster = "not_primary"   // the server is no primary
	classStepping  = "state_change"  // it stopped being primary, or is shutting down, meanwhile
	classConcern   = "write_concern" // done, but by fewer members than requested
	classShard     = "shard_lost"    // a shard did not answer a mongos
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

func classify(err error) error {
	if err == nil {
		return nil
	}
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
		// A write error of a single write excludes an effect, unless a mongos has lost the shard.
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

func neverConnected(err error) bool {
	class := database.ErrorClass(err)
	return class == database.ClassRefused || class == database.ClassUnreachable
}

func classifyCommand(e mongo.CommandError, err error) error {
	class := strings.ToLower(e.Name)
	if class == "" {
		class = database.ClassOther
	}
	return classifyCode(int(e.Code), class, err)
}

// classifyCode converts a server's error code. An interrupted command is in doubt.
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
