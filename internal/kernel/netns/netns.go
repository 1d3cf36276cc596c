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

// OnNewThread calls f on a thread of its own, which ends when f returns, and returns
// what f did. Processes that f starts inherit the thread's namespaces.
func OnNewThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread cannot end, and what it is in the whole process seems to
			// be in (/proc/PID/ns). It waits here, so that f gets another one.
			defer runtime.UnlockOSThread()
			done <- OnNewThread(f)
			return
		}
		done <- f() // not unlocked: the thread ends with the goroutine
	}()
	return <-done
}

// OwnPath leads every process to its own network namespace: the one that its first thread is in, which
// nothing here moves.
const OwnPath = "/proc/self/ns/net"

// Do calls f with a thread inside the network namespace at path: the calling one, which is brought
// back, or another where that is the process's first. Goroutines that f starts do not run there.
func Do(path string, f func() error) (err error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		runtime.UnlockOSThread()
		return OnNewThread(func() error {
			if err := Enter(path); err != nil {
				return err
			}
			return f()
		})
	}
	home, err := os.Open(currentPath)
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

// currentPath is the namespace of the calling thread.
const currentPath = "/proc/thread-self/ns/net"

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

// Create makes a namespace that stays at path, a file it creates, until path is
// unmounted. The calling thread, which must be locked, is in the namespace then.
func Create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return fmt.Errorf("make network namespace: %w", err)
	}
	f.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make network namespace: %w", err)
	}
	if err := unix.Mount(currentPath, path, "", unix.MS_BIND, ""); err != nil {
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
