// Package netns creates network namespaces and runs code inside them.
//
// A namespace belongs to a thread. OnNewThread runs code on a thread that may change its namespaces, because the
// thread ends with that code. Do borrows the calling thread and restores it.
package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnNewThread calls f on a new thread that ends when f returns. Processes that f starts inherit the
// thread's namespaces.
func OnNewThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The first thread cannot end, and /proc/PID/ns shows its namespaces for the whole process.
			// It waits here, so that f gets another thread.
			defer runtime.UnlockOSThread()
			done <- OnNewThread(f)
			return
		}
		done <- f() // still locked: the thread ends with the goroutine
	}()
	return <-done
}

// OwnPath is the network namespace of the calling process: that of its first thread, which this package never moves.
const OwnPath = "/proc/self/ns/net"

// Do calls f inside the network namespace at path. It uses the calling thread and restores it, or a new thread if
// the caller runs on the first one. Goroutines that f starts run elsewhere.
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

// Create creates a namespace and binds it to path, a new file, until path is unmounted. The calling thread, which
// must be locked, is then inside the namespace.
func Create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return fmt.Errorf("create network namespace: %w", err)
	}
	f.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("create network namespace: %w", err)
	}
	if err := unix.Mount(currentPath, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind network namespace to %s: %w", path, err)
	}
	return nil
}

// ID returns the inode number of the namespace at path, for example /proc/PID/ns/net.
func ID(path string) (uint64, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return s.Ino, nil
}
