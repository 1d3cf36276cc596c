package record

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"skerry/internal/base/advice"
)

// Errors that Create, Resume, Open and the writers wrap.
var (
	// ErrNotRun says that a directory holds no run.
	ErrNotRun = errors.New("not a run directory")
	// ErrNewer says that a file was written by a newer skerry.
	ErrNewer = errors.New("written by a newer skerry")
	// ErrDamaged says that a file of a run cannot be read as what it should be.
	ErrDamaged = errors.New("damaged")
	// ErrBusy says that another skerry is writing to the run.
	ErrBusy = errors.New("another skerry is writing to it")
	// ErrFinished says that nothing is left to do in a run.
	ErrFinished = errors.New("every trial of the plan is done")
	// ErrNoTrial says that a run has no such trial.
	ErrNoTrial = errors.New("no such trial")
)

// full adds to an error of a file system without space what to do about it.
func full(err error, dir string) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("the disk is full: %w", err)
		return advice.With(err, "finished trials are kept; make room and go on with: skerry run --resume %s", dir)
	}
	return err
}

// absent is ErrNotRun of a directory that is not there.
type absent struct{}

func (absent) Error() string { return "there is no such directory" }

// Is implements what package errors asks for.
func (absent) Is(target error) bool { return target == ErrNotRun || target == fs.ErrNotExist }
