package host

import "testing"

// NewTestNode makes a node that goes with the test.
func NewTestNode(t testing.TB) *Node { return newNode(t, nil) }
