package machine

import (
	"context"
	"time"
)

// Member is what one of the machines that a lab stands on has of it.
type Member struct {
	// Name is the machine's, "" where the lab is on the machine of the asking process alone.
	Name string
	Part
}

// Clock is how far a machine's clock is ahead of the asking process's.
type Clock struct {
	Offset time.Duration `json:"offset_ns"`
	// Uncertainty is the most that Offset may be wrong by, either way.
	Uncertainty time.Duration `json:"uncertainty_ns"`
}

// Timed is a part on a machine with another clock.
type Timed interface {
	// Clock asks the machine how its clock goes.
	Clock(ctx context.Context) (Clock, error)
	// Kernel is the release of the machine's kernel.
	Kernel() string
}
