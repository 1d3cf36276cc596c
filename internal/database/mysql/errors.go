package mysql

import (
	"errors"
)

// Sentinel errors.
var (
	// ErrProperty marks a client property that cannot be used.
	ErrProperty = errors.New("bad property")
	// ErrNoTemplate says that no empty data directory could be made.
	ErrNoTemplate = errors.New("making an empty data directory")

	// errNone says that nobody can be asked.
	errNone = errors.New("no server runs")
	// errReadOnlyClient says that a client of one member's copy was asked to write.
	errReadOnlyClient = errors.New("a client of one member's own copy only reads")
)
