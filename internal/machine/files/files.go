// Package files is what can be asked of the files of a machine, be it this one or another: a
// node's directory, an installation, what the kernel tells below /proc. Everything in it is a
// question and an answer, or a stream of bytes one way, as an agent on that machine can be
// asked; no descriptor and no path of the asking side is in it.
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

// System is the files of one machine, by their absolute paths there. Errors of files that are
// not there wrap fs.ErrNotExist, those of files that may not be touched fs.ErrPermission, and
// all name the path. A context that has ended refuses what has not begun.
type System interface {
	// Open reads a file from an offset in bytes to the end that it has when that is met. Beyond
	// the end there is nothing to read. The end of ctx ends the reading.
	Open(ctx context.Context, path string, offset int64) (io.ReadCloser, error)
	// Write makes a file hold what from has, as a whole: until then, and when an error is
	// returned, who opens it finds what it held before. Its folder is there; its owner stays who
	// it was. That it outlives a crash of the machine is not promised.
	Write(ctx context.Context, path string, mode fs.FileMode, from io.Reader) error
	// Append adds to the end of a file, which is made, readable by all, where it is not there.
	Append(ctx context.Context, path string, data []byte) error
	// MakeDir makes a folder and those above it, which others may enter and read. One that is
	// there stays as it is.
	MakeDir(ctx context.Context, path string) error
	// Remove removes a file, or a folder with all that is in it. What is not there is removed.
	Remove(ctx context.Context, path string) error
	// Rename moves a file or folder to another name of the same file system. It replaces a file,
	// and no folder in which something is: the error then wraps fs.ErrExist.
	Rename(ctx context.Context, from, to string) error
	// Own gives a file or folder, and all below it, to the user and group that processes run as
	// whose host.Command names them. Where a machine cannot run them as anybody else, what is
	// its own is theirs, and nothing is done.
	Own(ctx context.Context, path string, uid, gid uint32) error
	// Stat describes what a path leads to, and where that is without symbolic links.
	Stat(ctx context.Context, path string) (Info, error)
	// List describes what is in a folder, by its name. Symbolic links are what they are.
	List(ctx context.Context, dir string) ([]Info, error)
	// Space is that of the disk that a path is on.
	Space(ctx context.Context, path string) (Space, error)
}

// Info describes a file.
type Info struct {
	Path     string
	Size     int64 // bytes
	Mode     fs.FileMode
	Modified time.Time
}

// Space is what a disk has, in bytes.
type Space struct {
	Disk string // tells it apart from every other, of every machine
	Free int64  // for users without rights
	Size int64
}

// File is a file of some machine.
type File struct {
	On   System
	Path string
}

// Read returns what is in a file.
func Read(ctx context.Context, on System, path string) (string, error) {
	f, err := on.Open(ctx, path, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

// WriteText makes a file that all may read hold a text.
func WriteText(ctx context.Context, on System, path, text string) error {
	return on.Write(ctx, path, 0o644, strings.NewReader(text))
}

// Empty makes a folder that is empty: what was in it is gone.
func Empty(ctx context.Context, on System, dir string) error {
	if err := on.Remove(ctx, dir); err != nil {
		return err
	}
	return on.MakeDir(ctx, dir)
}

// Exists tells whether something is at a path. What cannot be looked at does not count.
func Exists(ctx context.Context, on System, path string) bool {
	_, err := on.Stat(ctx, path)
	return err == nil
}

// Glob are the paths that an absolute pattern of path/filepath matches, sorted. As there, what
// cannot be looked at does not match.
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

// match are the paths in a folder that a part of a pattern matches.
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

// Copy makes a folder a copy of another, of the same machine or not: its folders and plain
// files. What else is in it, sockets for example, is left out.
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
