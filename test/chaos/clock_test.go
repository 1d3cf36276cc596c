package chaos

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"skerry/systems/hydra/deploy"
	"skerry/test/testkit"
)

// jump sets the wall clocks of processes hours forward or back, and corrects them later.
func (w *world) jump(r *rand.Rand, name string, of ...deploy.State) fault {
	by := time.Duration(1+r.IntN(10)) * time.Hour
	if r.IntN(2) == 0 {
		by = -by
	}
	set := func(by time.Duration) func() error {
		return func() error {
			for _, s := range of {
				if err := w.setClock(s, by); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return fault{name: fmt.Sprintf("set the clock of %s by %s", name, by), apply: set(by), mend: set(0)}
}

// setClock sets the wall clock of a process; ended processes are ignored.
func (w *world) setClock(s deploy.State, by time.Duration) error {
	w.clocking.Lock()
	defer w.clocking.Unlock()
	err := w.trySetClock(s.PID, by)
	if syscall.Kill(s.PID, 0) != nil {
		return nil
	}
	return err
}

func (w *world) trySetClock(pid int, by time.Duration) error {
	c := w.clocks[pid]
	if c == nil {
		if by == 0 {
			return nil
		}
		var err error
		if c, err = testkit.OpenClock(pid); err != nil {
			return err
		}
		w.clocks[pid] = c
	}
	return c.TrySet(by)
}
