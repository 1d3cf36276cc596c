// Package netns makes network namespaces and runs code within them.
//
// A namespace belongs to a thread, so everything here is about threads: Throwaway runs
// code on a thread that may change what it likes, since it ends with that code; Do
// borrows the calling thread and brings it back.
package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Throwaway calls f on a thread of its own, which ends when f returns, and returns
// what f did. Processes that f starts inherit the thread's namespaces.
func Throwaway(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread cannot end, and what it is in the whole process seems to
			// be in (/proc/PID/ns). It waits here, so that f gets another one.
			defer runtime.UnlockOSThread()
			done <- Throwaway(f)
			return
		}
		done <- f() // not unlocked: the thread ends with the goroutine
	}()
	return <-done
}

// Own leads every process to its own network namespace: the one that its first thread is in, which
// nothing here moves.
const Own = "/proc/self/ns/net"

// Do calls f with a thread inside the network namespace at path: the calling one, which is brought
// back, or another where that is the process's first. Goroutines that f starts do not run there.
func Do(path string, f func() error) (err error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		runtime.UnlockOSThread()
		return Throwaway(func() error {
			if err := Enter(path); err != nil {
				return err
			}
			return f()
		})
	}
	home, err := os.Open(current)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter network namespace %s: %w", path, err)
	}
	defer home.Close()
	if err := Enter(path); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() {
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
			// The thread stays locked, so that it ends with its goroutine.
			err = errors.Join(err, fmt.Errorf("return from network namespace %s: %w", path, back))
			return
		}
		runtime.UnlockOSThread()
	}()
	return f()
}

// current is the namespace of the calling thread.
const current = "/proc/thread-self/ns/net"

// Enter moves the calling thread, which must be locked, into the namespace at path.
func Enter(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Setns(fd, unix.CLONE_NEWNET)
	}
	if err != nil {
		return fmt.Errorf("enter network namespace %s: %w", path, err)
	}
	return nil
}

// Make makes a namespace that stays at path, a file it creates, until path is
// unmounted. The calling thread, which must be locked, is in the namespace then.
func Make(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return fmt.Errorf("make network namespace: %w", err)
	}
	f.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make network namespace: %w", err)
	}
	if err := unix.Mount(current, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("keep network namespace at %s: %w", path, err)
	}
	return nil
}

// ID identifies the namespace at path, such as /proc/PID/ns/net, while it exists.
func ID(path string) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return s.Ino, nil
}
