package event

import (
	"errors"
	"fmt"

	"skerry/internal/machine/host"
)

// Disks are the nodes that must be on a disk of their own before anything starts on them,
// with its size in bytes.
func Disks(events []Event, s Stage) map[string]int64 {
	sizes := map[string]int64{}
	for _, e := range events {
		x, ok := e.What.spec.(onDisks)
		if !ok {
			continue
		}
		for node, size := range x.disks(s) {
			sizes[node] = max(sizes[node], size)
		}
	}
	return sizes
}

// MountDisks puts nodes on disks of their own.
func (w *World) MountDisks(sizes map[string]int64) error {
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
