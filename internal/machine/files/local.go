package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"skerry/internal/base/atomicfile"
	"skerry/internal/kernel/procfs"
)

// Local implements System on this machine.
type Local struct{}

var _ System = Local{}

func ended(ctx context.Context, op, path string) error {
	if err := ctx.Err(); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

func (Local) Open(ctx context.Context, path string, offset int64) (io.ReadCloser, error) {
	if err := ended(ctx, "open", path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &reading{f, ctx}, nil
}

// reading is a file whose reads end with a context. It hides the file's other methods.
type reading struct {
	f   *os.File
	ctx context.Context
}

func (r *reading) Read(b []byte) (int, error) {
	if err := ended(r.ctx, "read", r.f.Name()); err != nil {
		return 0, err
	}
	return r.f.Read(b)
}

func (r *reading) Close() error { return r.f.Close() }

func (Local) Append(ctx context.Context, path string, data []byte) error {
	if err := ended(ctx, "append", path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func (Local) MakeDir(ctx context.Context, path string) error {
	if err := ended(ctx, "mkdir", path); err != nil {
		return err
	}
	return os.MkdirAll(path, 0o755)
}

func (Local) Remove(ctx context.Context, path string) error {
	if err := ended(ctx, "remove", path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

func (Local) Rename(ctx context.Context, from, to string) error {
	if err := ended(ctx, "rename", from); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// Own implements System. Root can change owners. Root of a user namespace without that user does nothing: processes with
// that UID run in a nested namespace, where files of this user belong to it.
func (Local) Own(ctx context.Context, path string, uid, gid uint32) error {
	if os.Geteuid() != 0 {
		return nil
	}
	err := filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		return errors.Join(err, ended(ctx, "lchown", p), os.Lchown(p, int(uid), int(gid)))
	})
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}

func (Local) Stat(ctx context.Context, path string) (Info, error) {
	if err := ended(ctx, "stat", path); err != nil {
		return Info{}, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return Info{}, err
	}
	real, err := filepath.EvalSymlinks(path)
	return describe(real, st), err
}

func describe(path string, st fs.FileInfo) Info {
	return Info{Path: path, Size: st.Size(), Mode: st.Mode(), Modified: st.ModTime()}
}

func (Local) List(ctx context.Context, dir string) ([]Info, error) {
	if err := ended(ctx, "list", dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	var list []Info
	for _, e := range entries {
		switch st, e2 := e.Info(); {
		case e2 == nil:
			list = append(list, describe(filepath.Join(dir, e.Name()), st))
		case !errors.Is(e2, fs.ErrNotExist): // else it has gone meanwhile
			err = errors.Join(err, e2)
		}
	}
	return list, err
}

func (Local) Space(ctx context.Context, path string) (Space, error) {
	if err := ended(ctx, "statfs", path); err != nil {
		return Space{}, err
	}
	var st unix.Stat_t
	var disk unix.Statfs_t
	if err := errors.Join(unix.Stat(path, &st), unix.Statfs(path, &disk)); err != nil {
		return Space{}, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	boot, err := procfs.BootID()
	return Space{
		Disk: fmt.Sprintf("%s/%d", boot, st.Dev),
		Free: int64(disk.Bavail) * disk.Bsize, Size: int64(disk.Blocks) * disk.Bsize,
	}, err
}

func (Local) Write(ctx context.Context, path string, mode fs.FileMode, from io.Reader) error {
	if err := ended(ctx, "write", path); err != nil {
		return err
	}
	return atomicfile.Replace(path, mode, func(f *os.File) error {
		_, err := io.Copy(f, from)
		return errors.Join(err, keepOwner(f, path), ended(ctx, "write", path))
	})
}

// keepOwner gives a file the owner of the file that it replaces.
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

// SHA256 returns the checksum of a file of this machine in hexadecimal.
func SHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
