package tree

// SetYield makes the tree call yield in the middle of operations.
func (t *Tree) SetYield(yield func()) { t.yield = yield }
