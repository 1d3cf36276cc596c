package link

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// What an engine answers to requests it cannot carry out; test with errors.Is.
var (
	ErrInvalid = errors.New("invalid link") // a Spec or Quality that makes no sense
	ErrExists  = errors.New("link exists")  // the ID is in use
	ErrUnknown = errors.New("unknown link") // no link has the ID
)

// Limits of names: an ID fits one label of a log line, a device name the kernel's
// IFNAMSIZ.
const (
	maxID     = 64
	maxDevice = 15
)

// Validate says what makes s impossible, wrapping ErrInvalid.
func (s Spec) Validate() error {
	switch {
	case s.ID == "" || len(s.ID) > maxID:
		return fmt.Errorf("%w: ID %q: want 1 to %d bytes", ErrInvalid, s.ID, maxID)
	case s.MTU != 0 && (s.MTU < 68 || s.MTU > 65535):
		return fmt.Errorf("%w %s: MTU %d: want 68 to 65535, or 0 for 1500", ErrInvalid, s.ID, s.MTU)
	}
	if s.A.Path != nil {
		return fmt.Errorf("%w %s: its end A is on no machine", ErrInvalid, s.ID)
	}
	for _, e := range []End{s.A, s.B} {
		if e.Path != nil {
			if err := e.Path.validate(s.ID); err != nil {
				return err
			}
			e.Device = "far" // it has none
		}
		if e.Device == "" || len(e.Device) > maxDevice {
			return fmt.Errorf("%w %s: device %q: want 1 to %d bytes", ErrInvalid, s.ID, e.Device, maxDevice)
		}
		if e.Netns == "" {
			return fmt.Errorf("%w %s: device %s: no namespace given", ErrInvalid, s.ID, e.Device)
		}
	}
	for _, q := range []Quality{s.AB, s.BA} {
		if err := q.Validate(); err != nil {
			return fmt.Errorf("%s: %w", s.ID, err)
		}
	}
	return nil
}

// Validate says what makes q impossible, wrapping ErrInvalid.
func (q Quality) Validate() error {
	for _, p := range q.probabilities() {
		if !(p.value >= 0 && p.value <= 1) { // also refuses NaN
			return fmt.Errorf("%w: %s %v: want a probability, 0 to 1", ErrInvalid, p.name, p.value)
		}
	}
	known := []Distribution{"", Uniform, Normal, Pareto, ParetoNormal}
	switch {
	case q.Latency < 0:
		return fmt.Errorf("%w: latency %v is negative", ErrInvalid, q.Latency)
	case q.Jitter < 0:
		return fmt.Errorf("%w: jitter %v is negative", ErrInvalid, q.Jitter)
	case q.Bandwidth < 0:
		return fmt.Errorf("%w: bandwidth %d bit/s is negative", ErrInvalid, q.Bandwidth)
	case q.Queue < 0:
		return fmt.Errorf("%w: queue of %d bytes is negative", ErrInvalid, q.Queue)
	case !slices.Contains(known, q.Distribution):
		return fmt.Errorf("%w: distribution %q: want one of %q", ErrInvalid, q.Distribution, known[1:])
	case q.Jitter > q.MaxJitter():
		return fmt.Errorf("%w: jitter %v is too large for a latency of %v: at most %v with the distribution %s", ErrInvalid,
			q.Jitter, q.Latency, q.MaxJitter(), cmp.Or(q.Distribution, Normal))
	}
	return nil
}

type probability struct {
	name  string
	value float64
}

func (q Quality) probabilities() []probability {
	ps := []probability{
		{"loss", q.Loss}, {"duplicate", q.Duplicate}, {"reorder", q.Reorder}, {"corrupt", q.Corrupt},
	}
	if b := q.Burst; b != nil {
		ps = append(ps, probability{"burst p", b.P}, probability{"burst r", b.R},
			probability{"burst h", b.H}, probability{"burst k", b.K})
	}
	return ps
}
