package changelog

import "errors"

var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the journal is closed")
	// ErrRefused means that a record was not written: the disk is full, say. Later ones may
	// be.
	ErrRefused = errors.New("the journal cannot be written")
	// ErrBroken means that the journal cannot be written until it is opened again.
	ErrBroken = errors.New("the journal is broken")
	// ErrUnknown means that a record may have become durable, or may yet.
	ErrUnknown = errors.New("it is not known whether the journal has the record")
	// ErrTooLarge means a record of more than MaxRecord bytes.
	ErrTooLarge = errors.New("too large for the journal")

	// ErrCorrupt means that what was durable is damaged.
	ErrCorrupt = errors.New("the journal is corrupt")
	// ErrNewer means a journal of a newer version of this program.
	ErrNewer = errors.New("the journal was written by a newer version")
	// ErrInUse means that another process has the journal open.
	ErrInUse = errors.New("the journal is in use")
)
