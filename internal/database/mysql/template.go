package mysql

import (
	"context"

	"skerry/internal/machine/host"
)

// Template is a data directory that servers of all nodes begin with a copy of.
type Template struct {
	Host host.Host // where it is
	Dir  string    // all of it
	Data string    // what is copied, in Dir
}

// Remove removes it once it has served its turn. What cannot be removed goes with its node.
func (t *Template) Remove(ctx context.Context) {
	_ = t.Host.Files().Remove(context.WithoutCancel(ctx), t.Dir)
}
