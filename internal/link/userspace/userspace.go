// Package userspace is the link engine that forwards packets in a separate process. It requires only
// TUN devices or packet sockets from the kernel.
//
// The process runs real-time threads (package dataplane) and is controlled through a unix socket with
// one JSON document per line. Without ExitWithOwner it outlives the command that started it.
//
//	lab ── Engine ──socket──► agent: server ─► device, dataplane ─► packets
package userspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/helperproc"
	"skerry/internal/link/userspace/device"
)

var (
	// ErrEnded means that the emulator's process has ended.
	ErrEnded = errors.New("the link emulator has ended")
	// ErrUnavailable means that this machine cannot run the engine.
	ErrUnavailable = errors.New("the userspace link engine is not available")
)

// Available returns the kind of devices that this process can create, or ErrUnavailable.
func Available() (device.Kind, error) {
	if err := checkCapabilities(); err != nil {
		return "", err
	}
	fd, err := unix.Open(device.TUNPath, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
		return device.TUN, nil
	}
	s, socketErr := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if socketErr == nil {
		unix.Close(s)
		return device.Veth, nil
	}
	err = fmt.Errorf("%w: open %s: %w; packet socket: %w", ErrUnavailable, device.TUNPath, err, socketErr)
	return "", advice.With(err, "load the tun module (modprobe tun) or make %s accessible", device.TUNPath)
}

func checkCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for name, bit := range map[string]int{"CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN} {
		if data[bit/32].Effective&(1<<(bit%32)) == 0 {
			return advice.With(fmt.Errorf("%w: %s is missing", ErrUnavailable, name),
				"run as root, or within a user namespace: unshare --user --map-root-user --net --mount")
		}
	}
	return nil
}

// Options configures the start of an emulator process.
type Options struct {
	// Command is the program and the arguments that make it call Main.
	Command []string
	// Socket is the path of the control socket, at most 107 bytes.
	Socket string
	// LogFile receives the process's log; empty discards it.
	LogFile string
	Env     []string
	// ExitWithOwner ends the emulator when this process ends for any reason.
	ExitWithOwner bool
	// Kind of devices; empty uses the result of Available.
	Kind device.Kind
}

// maxSocketPath is the limit of sockaddr_un.
const maxSocketPath = 107

// Start starts an emulator and connects to it. ctx bounds only the start.
func Start(ctx context.Context, o Options) (*Engine, error) {
	p, err := spawn(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start the link emulator: %w", err)
	}
	e, err := Connect(ctx, o.Socket)
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	e.process = p
	return e, nil
}

// process is an emulator that this process started.
type process struct{ *helperproc.Process }

func spawn(ctx context.Context, o Options) (*process, error) {
	if len(o.Socket) > maxSocketPath {
		return nil, fmt.Errorf("socket path %s: %d bytes, want at most %d", o.Socket, len(o.Socket), maxSocketPath)
	}
	p, reply, err := helperproc.Start(ctx, helperproc.Options{Command: o.Command, LogFile: o.LogFile, Env: o.Env, Owned: o.ExitWithOwner},
		config{Socket: o.Socket, ExitWithOwner: o.ExitWithOwner, Kind: o.Kind})
	if err != nil {
		return nil, err
	}
	var r ready
	if err = json.Unmarshal(reply, &r); err != nil {
		err = fmt.Errorf("answer %q: %w", bytes.TrimSpace(reply), err)
	} else {
		err = decodeError(r.Error)
	}
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return &process{p}, nil
}

// shutdownGrace is the time that an emulator has to end before it is killed.
const shutdownGrace = 10 * time.Second

// wait waits until the process has ended, and kills it after shutdownGrace.
func (p *process) wait(ctx context.Context) error {
	late := time.NewTimer(shutdownGrace)
	defer late.Stop()
	select {
	case <-p.Done():
	case <-ctx.Done():
		return p.Kill()
	case <-late.C:
		return errors.Join(errors.New("link emulator did not end and was killed"), p.Kill())
	}
	p.Close()
	return nil
}

// exitError returns how the process ended, with the end of its log.
func (p *process) exitError() error {
	select {
	case <-p.Done():
	case <-time.After(time.Second): // the connection ends shortly before the process
		return ErrEnded
	}
	return fmt.Errorf("%w: %s", ErrEnded, p.ExitStatus())
}
