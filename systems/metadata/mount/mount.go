// Package mount is the metadata service as a FUSE file system.
//
// A file is read when it is opened, and written as a whole when it is closed or synced: a program that opens it
// afterwards reads that content. A file has at most metadata.MaxFile bytes.
package mount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/systems/metadata"
)

// Options configures a mount.
type Options struct {
	// Cache is how long the kernel may cache names and attributes. Changes by other clients are invisible for as long.
	Cache time.Duration
	Ready func()
}

const patience = time.Minute

// Run mounts the service on a directory until the context ends or the directory is unmounted.
func Run(ctx context.Context, s metadata.Service, dir string, o Options) error {
	root := &node{volume: &volume{service: s, uid: uint32(os.Getuid()), gid: uint32(os.Getgid())}}
	if r := root.runCommand(metadata.Command{Op: metadata.Stat, Path: "/"}); r.Err != nil {
		return fmt.Errorf("mounting on %s: %w", dir, r.Err)
	}
	options := &fs.Options{
		EntryTimeout: &o.Cache, AttrTimeout: &o.Cache,
		MountOptions:   fuse.MountOptions{FsName: "skerry-metadata", Name: "skerry", DirectMount: true, DisableXAttrs: true, MaxWrite: 128 << 10},
		RootStableAttr: &fs.StableAttr{Mode: fuse.S_IFDIR, Ino: 1},
	}
	server, err := fs.Mount(dir, root, options)
	if err != nil {
		return advice.With(fmt.Errorf("mounting on %s: %w", dir, err),
			"check that the directory exists and is empty and that /dev/fuse exists; install fuse3 unless you are root")
	}
	if o.Ready != nil {
		o.Ready()
	}
	ended := make(chan struct{})
	go func() {
		server.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil // by umount
	case <-ctx.Done():
	}
	if err := server.Unmount(); err != nil {
		// A program uses the mount. Detach it: the program keeps its open files, and new ones are impossible.
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", dir, err)
		}
		return nil
	}
	<-ended
	return nil
}

type volume struct {
	service  metadata.Service
	uid, gid uint32
}

func (v *volume) runCommand(c metadata.Command) metadata.Result {
	if err := c.Check(); err != nil {
		return metadata.Result{Err: err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return v.service.Do(ctx, []metadata.Command{c})[0]
}

func errno(err error) syscall.Errno {
	for _, e := range []struct {
		err   error
		errno syscall.Errno
	}{
		{nil, 0}, {metadata.ErrNotFound, syscall.ENOENT}, {metadata.ErrExists, syscall.EEXIST}, {metadata.ErrNotEmpty, syscall.ENOTEMPTY},
		{metadata.ErrNotDirectory, syscall.ENOTDIR}, {metadata.ErrIsDirectory, syscall.EISDIR}, {metadata.ErrTooLong, syscall.ENAMETOOLONG},
		{metadata.ErrElsewhere, syscall.EREMOTE}, {metadata.ErrInvalid, syscall.EINVAL},
	} {
		if errors.Is(err, e.err) {
			return e.errno
		}
	}
	return syscall.EIO
}

func (v *volume) attributes(e metadata.Entry, out *fuse.Attr) {
	out.Ino, out.Size, out.Mode = e.ID, uint64(e.Size), fileType(e.Kind)|uint32(e.Mode)
	out.Nlink, out.Blksize = 1, 4096
	if e.Kind != metadata.File {
		out.Nlink, out.Size = 2, 4096
	}
	out.Blocks = (out.Size + 511) / 512
	out.Uid, out.Gid = v.uid, v.gid
	t := e.Time()
	out.SetTimes(&t, &t, &t)
}

func fileType(k metadata.Kind) uint32 {
	if k == metadata.File {
		return fuse.S_IFREG
	}
	return fuse.S_IFDIR
}
