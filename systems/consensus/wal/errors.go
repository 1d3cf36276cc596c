package wal

import "errors"

var (
	// ErrLocked tells that another process has the directory.
	ErrLocked = errors.New("in use by another process")
	// ErrCorrupt tells that data which was durable is damaged: cutting it off would lose
	// what was acknowledged.
	ErrCorrupt = errors.New("log is damaged")
	// ErrVersion tells that a newer version wrote the log.
	ErrVersion = errors.New("log was written by a newer version")
	// ErrOwner tells that the log belongs to another cluster or member.
	ErrOwner = errors.New("log belongs to another member")
	// ErrSync tells that the disk failed to make writes durable; nobody can tell what
	// it has, so that the log stays closed for writing.
	ErrSync = errors.New("disk failed to make the log durable")
)
