// Package rootless runs skerry as root of a user namespace. This permits network namespaces and devices, but neither
// control groups nor real-time priority.
//
// A program with several threads cannot change its user namespace. It therefore replaces itself through unshare and nsenter
// of util-linux:
//
//	skerry lab up ──exec──► unshare ──exec──► skerry lab up     (Enter)
//	                                           └─► skerry agent hold   keeps the namespace
//	skerry lab exec ──exec──► nsenter ──exec──► skerry lab exec (Join)
package rootless

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"skerry/internal/base/advice"
	"skerry/internal/kernel/procfs"
)

var ErrUnavailable = errors.New("user namespaces are not permitted for this user")

// envVariable marks a process inside.
const envVariable = "SKERRY_ROOTLESS"

// Inside reports whether Enter or Join started this process.
func Inside() bool { return os.Getenv(envVariable) != "" }

// Needed reports whether this process lacks the rights to make labs.
func Needed() (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false, fmt.Errorf("read capabilities: %w", err)
	}
	for _, bit := range []int{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN} {
		if data[bit/32].Effective&(1<<(bit%32)) == 0 {
			return true, nil
		}
	}
	return false, nil
}

// unshare makes the namespaces. The machine's mounts still propagate into them.
var unshare = []string{"--user", "--map-root-user", "--net", "--mount", "--propagation", "slave", "--"}

// Available returns nil if a user namespace can be made, else the reason, which wraps ErrUnavailable.
func Available(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "unshare", append(unshare, "true")...).CombinedOutput()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w: %w: %s", ErrUnavailable, err, strings.TrimSpace(string(out)))
	return advice.With(err, "run skerry as root, or open user namespaces: "+
		"sysctl kernel.unprivileged_userns_clone=1 on Debian, kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu, "+
		"user.max_user_namespaces above 0")
}

// Enter replaces this process by the program exe in a new user namespace. It returns only on failure.
func Enter(ctx context.Context, exe string, args, env []string) error {
	if err := Available(ctx); err != nil {
		return err
	}
	return execProgram("unshare", append(append(unshare, exe), args...), env)
}

// Join replaces this process by the program exe in the holder's namespaces, in the same working directory. It returns only
// on failure.
func Join(holder procfs.Process, exe string, args, env []string) error {
	command, err := nsenterArgs(holder, exe, args)
	if err != nil {
		return err
	}
	return execProgram("nsenter", command, env)
}

// Command is Join in a separate process. At the end of ctx the process gets SIGTERM, because only it can undo its
// changes.
func Command(ctx context.Context, holder procfs.Process, exe string, args, env []string) (*exec.Cmd, error) {
	command, err := nsenterArgs(holder, exe, args)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "nsenter", command...)
	cmd.Env = environment(env)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	return cmd, nil
}

func nsenterArgs(holder procfs.Process, exe string, args []string) ([]string, error) {
	if !holder.Alive() {
		return nil, fmt.Errorf("enter user namespace: holder process: %w", procfs.ErrGone)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("enter user namespace: %w", err)
	}
	command := []string{
		"--target", strconv.Itoa(holder.PID), "--user", "--preserve-credentials",
		"--net", "--mount", "--wdns=" + dir, "--", exe,
	}
	return append(command, args...), nil
}

func execProgram(program string, args, env []string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return advice.With(fmt.Errorf("enter user namespace: %w", err), "install util-linux, or run skerry as root")
	}
	err = unix.Exec(path, append([]string{program}, args...), environment(env))
	return fmt.Errorf("enter user namespace: %w", err)
}

func environment(env []string) []string {
	return append(append(os.Environ(), envVariable+"=1"), env...)
}

// StartHolder starts a process that keeps this process's namespaces alive and outlives it. exe runs command for this.
func StartHolder(exe string, command []string, env ...string) (procfs.Process, error) {
	cmd := exec.Command(exe, command...)
	cmd.Env, cmd.Dir = append(os.Environ(), env...), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return procfs.Process{}, fmt.Errorf("start the holder of namespaces: %w", err)
	}
	p, err := procfs.FindProcess(cmd.Process.Pid)
	if err != nil {
		return p, err
	}
	// The holder outlives this process, which does not wait for it.
	return p, cmd.Process.Release()
}
