// Package tree is a directory tree in memory that many read and change at once.
//
// Every operation takes effect at one moment between its call and its return, as if it had
// locked the path from the root down (linearizable); Locked does that literally, Tree
// needs no lock to read.
package tree

import "skerry/internal/metadata"

// Namespace is what a tree can do. Commands must have passed metadata.Command.Check.
type Namespace interface {
	// Do runs one command, reading or changing.
	Do(c metadata.Command) metadata.Result
}
