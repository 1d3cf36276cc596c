package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MakePlace makes the mount that namespaces are mounted below. One call then unmounts them
// all, wherever copies of it went: it is shared, as `ip netns` does.
func MakePlace(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = Share(dir)
	}
	if err != nil {
		return fmt.Errorf("mount place of namespaces: %w", err)
	}
	return nil
}

// Share makes a directory a mount of its own that has peers where it is copied to.
func Share(dir string) error {
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		// Where the directory's own mount is shared, as /run is by systemd, this one belongs
		// to its peers at first, and would pass every mount below on to all of them.
		err = unix.Mount("", dir, "", unix.MS_PRIVATE, "")
	}
	if err == nil {
		err = unix.Mount("", dir, "", unix.MS_SHARED, "")
	}
	return err
}

// Unmount undoes MakePlace and Share, with all that is mounted below.
func Unmount(dir string) error {
	for {
		err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		switch {
		case err == nil: // perhaps mounted more than once
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		case errors.Is(err, unix.EPERM) && !Mounted(dir):
			return nil // that of a rootless lab, seen from outside its namespace
		default:
			return &os.PathError{Op: "unmount", Path: dir, Err: err}
		}
	}
}

// Mounted tells whether something is mounted at a directory. Within a user namespace
// mounts are seen by the processes in it alone.
func Mounted(dir string) bool {
	var here, above unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, dir, 0, unix.STATX_BASIC_STATS, &here) != nil {
		return false
	}
	if here.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return here.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	err := unix.Statx(unix.AT_FDCWD, filepath.Dir(dir), 0, unix.STATX_BASIC_STATS, &above)
	return err != nil || here.Dev_minor != above.Dev_minor || here.Dev_major != above.Dev_major
}
