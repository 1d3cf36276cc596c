package event

import (
	"errors"
	"fmt"

	"skerry/internal/machine/host"
)

// DiskSizes are the nodes that must be on a disk of their own before anything starts on them,
// with its size in bytes.
func DiskSizes(events []Event, s Layout) map[string]int64 {
	sizes := map[string]int64{}
	for _, e := range events {
		x, ok := e.Spec.spec.(diskReserver)
		if !ok {
			continue
		}
		for node, size := range x.diskSizes(s) {
			sizes[node] = max(sizes[node], size)
		}
	}
	return sizes
}

// MountDisks puts nodes on disks of their own.
func (w *Testbed) MountDisks(sizes map[string]int64) error {
	var errs []error
	for name, size := range sizes {
		h, err := w.Host(name)
		if err != nil {
			return err
		}
		m, ok := h.(host.Controls)
		if !ok {
			return fmt.Errorf("a disk for %s: %w here", name, ErrUnavailable)
		}
		errs = append(errs, m.MountDisk(size))
	}
	return errors.Join(errs...)
}
