package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"skerry/internal/base/atomicfile"
)

// Write implements System.
func (Local) Write(ctx context.Context, path string, mode fs.FileMode, from io.Reader) error {
	if err := ended(ctx, "write", path); err != nil {
		return err
	}
	return atomicfile.Replace(path, mode, func(f *os.File) error {
		_, err := io.Copy(f, from)
		return errors.Join(err, keepOwner(f, path), ended(ctx, "write", path))
	})
}

// keepOwner gives a file to who has the one that it is to replace.
func keepOwner(f *os.File, path string) error {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || os.Geteuid() != 0 || st.Uid == 0 && st.Gid == 0 {
		return nil
	}
	if err := f.Chown(int(st.Uid), int(st.Gid)); !errors.Is(err, unix.EINVAL) { // see Own
		return err
	}
	return nil
}
