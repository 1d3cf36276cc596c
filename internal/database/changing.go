package database

import "sync"

// Changing lets one change of membership be under way at a time. The zero value is of a
// cluster that nothing changes.
type Changing struct{ mu sync.Mutex }

// Begin begins a change, which End ends; while another one is under way it is ErrBusy.
func (c *Changing) Begin() error {
	if !c.mu.TryLock() {
		return ErrBusy
	}
	return nil
}

// Wait begins a change when none is under way any more.
func (c *Changing) Wait() { c.mu.Lock() }

// End ends the change.
func (c *Changing) End() { c.mu.Unlock() }
