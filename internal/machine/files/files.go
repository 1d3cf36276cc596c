// Package files accesses the file system of a machine, local or remote. Each operation is a call, or a one-way stream of
// bytes, so that an agent can serve it; no descriptors or local paths cross the interface.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// System is the file system of one machine, addressed by absolute paths. Errors name the path and wrap fs.ErrNotExist or
// fs.ErrPermission where these apply. An operation does not start if its context has ended.
type System interface {
	// Open reads a file from an offset in bytes to its end. An offset beyond the end reads nothing. The end of ctx ends the
	// reading.
	Open(ctx context.Context, path string, offset int64) (io.ReadCloser, error)
	// Write replaces a file's content atomically: until it returns nil, readers see the old content. The folder must exist;
	// the owner stays. Write does not sync.
	Write(ctx context.Context, path string, mode fs.FileMode, from io.Reader) error
	// Append adds to the end of a file and creates it with mode 0644 if it is missing.
	Append(ctx context.Context, path string, data []byte) error
	// MakeDir makes a folder with its parents, mode 0755. An existing folder stays unchanged.
	MakeDir(ctx context.Context, path string) error
	// Remove removes a file or a folder with its content. A missing path is not an error.
	Remove(ctx context.Context, path string) error
	// Rename moves a file or folder within a file system. It replaces a file; for a folder that is not empty, the error
	// wraps fs.ErrExist.
	Rename(ctx context.Context, from, to string) error
	// Own gives a path, with everything below it, to the user and group of processes whose host.Command has this UID and
	// GID. If the machine cannot run them as another user, Own does nothing.
	Own(ctx context.Context, path string, uid, gid uint32) error
	// Stat follows symbolic links and returns the resolved path.
	Stat(ctx context.Context, path string) (Info, error)
	// List returns a folder's entries by name. It does not follow symbolic links.
	List(ctx context.Context, dir string) ([]Info, error)
	// Space returns the space on the disk of a path.
	Space(ctx context.Context, path string) (Space, error)
}

type Info struct {
	Path     string
	Size     int64 // bytes
	Mode     fs.FileMode
	Modified time.Time
}

// Space is the size of a disk in bytes.
type Space struct {
	Disk string // unique among all machines
	Free int64  // for users without rights
	Size int64
}

// File is a file on a machine.
type File struct {
	On   System
	Path string
}

// Read returns a file's content.
func Read(ctx context.Context, on System, path string) (string, error) {
	f, err := on.Open(ctx, path, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

// WriteText writes a file with mode 0644.
func WriteText(ctx context.Context, on System, path, text string) error {
	return on.Write(ctx, path, 0o644, strings.NewReader(text))
}

// Empty removes a folder's content and makes the folder if it is missing.
func Empty(ctx context.Context, on System, dir string) error {
	if err := on.Remove(ctx, dir); err != nil {
		return err
	}
	return on.MakeDir(ctx, dir)
}

// Exists reports whether a path exists. An unreadable path does not.
func Exists(ctx context.Context, on System, path string) bool {
	_, err := on.Stat(ctx, path)
	return err == nil
}

// Glob returns the paths that match an absolute pattern of path/filepath, sorted. It ignores unreadable folders.
func Glob(ctx context.Context, on System, pattern string) []string {
	found := []string{"/"}
	for part := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
		var next []string
		for _, dir := range found {
			next = append(next, match(ctx, on, dir, part)...)
		}
		found = next
	}
	return found
}

func match(ctx context.Context, on System, dir, part string) (found []string) {
	if !strings.ContainsAny(part, `*?[\`) {
		if path := filepath.Join(dir, part); Exists(ctx, on, path) {
			return []string{path}
		}
		return nil
	}
	entries, _ := on.List(ctx, dir) // what can be looked at
	for _, e := range entries {
		if ok, _ := filepath.Match(part, filepath.Base(e.Path)); ok { // a bad pattern matches nothing
			found = append(found, e.Path)
		}
	}
	return found
}

// Copy copies the folders and regular files of a folder, between machines if necessary. It skips other files, such as
// sockets.
func Copy(ctx context.Context, to System, target string, from System, dir string) error {
	if err := copyDir(ctx, to, target, from, dir); err != nil {
		return fmt.Errorf("copying %s: %w", dir, err)
	}
	return nil
}

func copyDir(ctx context.Context, to System, target string, from System, dir string) error {
	if err := to.MakeDir(ctx, target); err != nil {
		return err
	}
	entries, err := from.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		into := filepath.Join(target, filepath.Base(e.Path))
		switch {
		case e.Mode.IsDir():
			err = copyDir(ctx, to, into, from, e.Path)
		case e.Mode.IsRegular():
			err = copyFile(ctx, to, into, from, e.Path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(ctx context.Context, to System, target string, from System, path string) error {
	in, err := from.Open(ctx, path, 0)
	if err != nil {
		return err
	}
	return errors.Join(to.Write(ctx, target, 0o644, in), in.Close())
}
