package host

import "testing"

// NewTestNode creates a node for the test.
func NewTestNode(t testing.TB) *Node { return newNode(t, nil) }
