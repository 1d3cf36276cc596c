package etcd

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"skerry/internal/database"
	"skerry/internal/load"
)

// Error classes of etcd, next to those of package database.
const (
	classNoLeader = "no_leader"        // no consensus at the time
	classNoSpace  = "no_space"         // the quota of the backend is used up
	classOverload = "too_many"         // too many requests wait for consensus
	classDropped  = "proposal_dropped" // the member had no leader to forward the proposal to
	classStopped  = "stopped"          // the member is going down
	classConflict = "conflict"         // another client changed the record at every try
	classRecord   = "record"           // the value is not a record
	classAuth     = "auth"             // the login was refused
)

// notDone lists errors of requests that etcd did not propose to Raft.
var notDone = []struct {
	err   error
	class string
}{
	{rpctypes.ErrNoLeader, classNoLeader},
	{rpctypes.ErrNotLeader, classNoLeader},
	{rpctypes.ErrNoSpace, classNoSpace},
	{rpctypes.ErrTooManyRequests, classOverload},
	{rpctypes.ErrRequestTooLarge, "too_large"},
	{rpctypes.ErrEmptyKey, "empty_key"},
	{rpctypes.ErrPermissionDenied, "denied"},
	{rpctypes.ErrAuthFailed, classAuth},
	{rpctypes.ErrUserEmpty, classAuth},
	{rpctypes.ErrInvalidAuthToken, classAuth},
}

// Texts of Raft errors, which reach clients unchanged.
const (
	proposalDropped = "raft proposal dropped"
	raftStopped     = "raft: stopped" // the member was removed
)

// classifyError converts an error of etcd's client. A request that timed out in the cluster is in doubt.
func classifyError(addr string, err error) error {
	for _, n := range notDone {
		if errors.Is(err, n.err) {
			return load.Failed(n.class, addr, err)
		}
	}
	switch {
	case strings.Contains(err.Error(), proposalDropped):
		return load.Failed(classDropped, addr, err)
	case isUnsent(err):
		return load.Failed(dialClass(err.Error()), addr, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, rpctypes.ErrTimeout),
		errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail), errors.Is(err, rpctypes.ErrTimeoutDueToConnectionLost),
		errors.Is(err, rpctypes.ErrTimeoutWaitAppliedIndex):
		return load.Unknown(database.ClassTimeout, addr, err)
	case errors.Is(err, context.Canceled):
		return load.Unknown(database.ClassCanceled, addr, err)
	case errors.Is(err, rpctypes.ErrStopped), errors.Is(err, rpctypes.ErrLeaderChanged),
		strings.Contains(err.Error(), raftStopped):
		return load.Unknown(classStopped, addr, err)
	}
	switch grpcCode(err) {
	case codes.DeadlineExceeded:
		return load.Unknown(database.ClassTimeout, addr, err)
	case codes.Canceled:
		return load.Unknown(database.ClassCanceled, addr, err)
	case codes.Unavailable:
		return load.Unknown(brokenClass(err.Error()), addr, err)
	}
	return load.Unknown(database.ClassOther, addr, err)
}

func grpcCode(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}

// isUnsent reports whether a request was never sent: gRPC then reports why the last dial failed.
func isUnsent(err error) bool {
	return grpcCode(err) == codes.Unavailable && (strings.Contains(err.Error(), "transport: Error while dialing") ||
		strings.Contains(err.Error(), "transport: authentication handshake failed")) // of TLS
}

func dialClass(text string) string {
	switch {
	case strings.Contains(text, "connection refused"):
		return database.ClassRefused
	case strings.Contains(text, "no route to host"), strings.Contains(text, "network is unreachable"):
		return database.ClassUnreachable
	case strings.Contains(text, "timeout"), strings.Contains(text, "deadline exceeded"), strings.Contains(text, "timed out"):
		return database.ClassConnectTimeout
	}
	return database.ClassOther
}

func brokenClass(text string) string {
	switch {
	case strings.Contains(text, "reset by peer"), strings.Contains(text, "broken pipe"):
		return database.ClassReset
	case strings.Contains(text, "keepalive"), strings.Contains(text, "timed out"):
		return database.ClassTimeout
	}
	return database.ClassEOF
}

// canRetryElsewhere reports whether another member may succeed.
func canRetryElsewhere(err error) bool {
	var e *load.OpError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Class {
	case database.ClassRefused, database.ClassUnreachable, database.ClassConnectTimeout, database.ClassTimeout, database.ClassReset, database.ClassEOF, database.ClassOther,
		classNoLeader, classDropped, classStopped:
		return true
	}
	return false
}
