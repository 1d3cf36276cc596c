package tree

// SetYield has the tree call yield wherever an operation is half done.
func (t *Tree) SetYield(yield func()) { t.yield = yield }
