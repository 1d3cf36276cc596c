package rpc

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"syscall"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/cgroup"
	"skerry/internal/link"
	"skerry/internal/link/probe"
	"skerry/internal/machine"
	"skerry/internal/machine/host"
)

// Failure is an error encoded for another process.
type Failure struct {
	Text string `json:"text"`
	// Next is the advice.
	Next string `json:"next,omitempty"`
	// Is holds the names of the sentinel errors that match.
	Is []string `json:"is,omitempty"`
	// Errno is the system's error, 0 without one.
	Errno syscall.Errno `json:"errno,omitempty"`
	// Exit is a program's exit status, 0 without one.
	Exit host.ExitCode `json:"exit,omitempty"`
}

// errorsByName maps the sentinel errors that keep their identity across machines to names.
var errorsByName = map[string]error{
	"machine.exists":       machine.ErrExists,
	"machine.not-found":    machine.ErrNotFound,
	"machine.in-use":       machine.ErrInUse,
	"machine.damaged":      machine.ErrDamaged,
	"machine.no-node":      machine.ErrNoNode,
	"machine.elsewhere":    machine.ErrElsewhere,
	"machine.kernel":       machine.ErrKernel,
	"link.exists":          link.ErrExists,
	"link.unknown":         link.ErrUnknown,
	"link.invalid":         link.ErrInvalid,
	"probe.no-answer":      probe.ErrNoAnswer,
	"host.closed":          host.ErrClosed,
	"host.name":            host.ErrName,
	"host.no-group":        host.ErrNoGroup,
	"cgroup.none":          cgroup.ErrNone,
	"cgroup.no-controller": cgroup.ErrNoController,
	"fs.exists":            fs.ErrExist,
	"fs.not-found":         fs.ErrNotExist,
	"fs.permission":        fs.ErrPermission,
	"fs.invalid":           fs.ErrInvalid,
	"fs.closed":            fs.ErrClosed,
	"context.canceled":     context.Canceled,
	"context.deadline":     context.DeadlineExceeded,
}

// NewFailure encodes an error for another process. It returns nil for nil.
func NewFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Text: err.Error(), Next: advice.Of(err)}
	for name, k := range errorsByName {
		if errors.Is(err, k) {
			f.Is = append(f.Is, name)
		}
	}
	errors.As(err, &f.Errno)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		f.Exit = host.ExitCode(exit.ExitCode())
	}
	return f
}

// Err decodes the error, so that errors.Is and errors.As match the original. It returns nil for nil.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	var is []error
	for _, name := range f.Is {
		is = append(is, errorsByName[name]) // nil, of a newer agent, is left out
	}
	if f.Errno != 0 {
		is = append(is, f.Errno)
	}
	if f.Exit != 0 {
		is = append(is, f.Exit)
	}
	err := advice.WithText(f.Text, errors.Join(is...))
	if f.Next != "" {
		err = advice.With(err, "%s", f.Next)
	}
	return err
}
