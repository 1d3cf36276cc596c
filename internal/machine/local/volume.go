package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/topology"
)

var (
	// ErrNoLoop is returned if the machine has no loop devices.
	ErrNoLoop = errors.New("no loop device")
	// ErrNoMkfs is returned if mkfs.ext4 is missing.
	ErrNoMkfs = errors.New("no mkfs.ext4")
	// ErrNoOverlay is returned if the kernel cannot mount overlayfs there.
	ErrNoOverlay = errors.New("no overlayfs")
)

// mountVolume mounts a volume on a node's directory, which is empty. The backing files are kept in backing, which
// mountVolume makes outside dir.
//
//	bind     a directory mounted at the node's, as `docker run -v /host/dir:/data`
//	overlay  overlayfs, as a container's own writable layer: an empty lower directory, an
//	         upper one that takes what is written
//	loop     an ext4 file system in a file, on a loop device
//
// The process that removes the directory unmounts it; a loop device then releases its file.
func mountVolume(v topology.Volume, dir, backing string) error {
	var err error
	switch v.Kind {
	case topology.BindVolume:
		err = bindVolume(dir, backing)
	case topology.OverlayVolume:
		err = overlayVolume(dir, backing)
	case topology.LoopVolume:
		err = loopVolume(dir, backing, v.Size)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("put %s on a volume (%s): %w", dir, v.Kind, err)
	}
	return nil
}

// CheckVolume returns why this machine cannot mount a volume, nil if it can.
func CheckVolume(v topology.Volume) error {
	if v.Kind != topology.LoopVolume {
		return nil // whether overlayfs can be mounted depends on where
	}
	if _, err := os.Stat(loopControl); err != nil {
		return fmt.Errorf("%w: %w", ErrNoLoop, err)
	}
	_, err := findMkfs()
	return err
}

func bindVolume(dir, backing string) error {
	if err := os.MkdirAll(backing, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(backing, dir, "", unix.MS_BIND, ""); err != nil {
		return &os.PathError{Op: "mount", Path: dir, Err: err}
	}
	return nil
}

func overlayVolume(dir, backing string) error {
	option := make([]string, 0, 3)
	for _, part := range []string{"lower", "upper", "work"} {
		path := filepath.Join(backing, part)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		option = append(option, part+"dir="+overlayEscape.Replace(path))
	}
	if err := unix.Mount("overlay", dir, "overlay", 0, strings.Join(option, ",")); err != nil {
		return fmt.Errorf("%w: %w", ErrNoOverlay, &os.PathError{Op: "mount", Path: dir, Err: err})
	}
	return nil
}

// overlayEscape quotes characters with a meaning in overlayfs options.
var overlayEscape = strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`)

const loopControl = "/dev/loop-control"

func findMkfs() (string, error) {
	for _, path := range []string{"mkfs.ext4", "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"} {
		if found, err := exec.LookPath(path); err == nil {
			return found, nil
		}
	}
	return "", advice.With(ErrNoMkfs, "install Debian's e2fsprogs")
}

func loopVolume(dir, backing string, size int64) error {
	program, err := findMkfs()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(backing, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(backing, "ext4.img"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		return err
	}
	// No lazy initialisation, which would disturb measurements; see noinit_itable.
	out, err := exec.Command(program, "-q", "-F", "-m", "0", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1", file.Name()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make a file system: %w: %s", err, strings.TrimSpace(string(out)))
	}
	device, err := attachLoop(file)
	if err != nil {
		return err
	}
	defer device.Close() // the mount keeps it, and it goes with the mount
	if err := unix.Mount(device.Name(), dir, "ext4", unix.MS_NODEV, "noinit_itable"); err != nil {
		return &os.PathError{Op: "mount", Path: dir, Err: err}
	}
	// Software expects an empty directory.
	if err := os.Remove(filepath.Join(dir, "lost+found")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// loopTries bounds the attempts to get a loop device that others take meanwhile.
const loopTries = 100

// attachLoop attaches a file to a loop device, which is released when the last process closes it.
func attachLoop(file *os.File) (*os.File, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLoop, err)
	}
	defer control.Close()
	for range loopTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoLoop, err)
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoLoop, err)
		}
		config := unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); err == nil {
			return device, nil
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("%w: %w", ErrNoLoop, err)
		}
	}
	return nil, fmt.Errorf("%w: others took %d of them", ErrNoLoop, loopTries)
}
