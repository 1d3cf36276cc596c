package metabench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"skerry/internal/kernel/procfs"
)

// served is a server as a process of its own.
type served struct {
	cmd  *exec.Cmd
	addr string
}

// announced finds the address in what the server prints once it answers.
var announced = regexp.MustCompile(`on http://([^/]+)/`)

// start runs a server on a folder, at any address unless more says which.
func (b *bench) start(ctx context.Context, dir string, more ...string) (*served, error) {
	args := append([]string{"metadata", "serve", "--listen", "127.0.0.1:0", "--data", dir}, more...)
	cmd := exec.CommandContext(ctx, b.Exe, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if m := announced.FindStringSubmatch(line); m != nil {
		return &served{cmd: cmd, addr: m[1]}, nil
	}
	return nil, errors.Join(fmt.Errorf("the server said %q", line), err, cmd.Process.Kill(), ignoreExit(cmd.Wait()))
}

// stop ends the server by a signal, and waits for it.
func (s *served) stop(by syscall.Signal) error {
	if err := s.cmd.Process.Signal(by); err != nil {
		return err
	}
	return ignoreExit(s.cmd.Wait())
}

// ignoreExit is nil for a process that ended by the signal that it was sent.
func ignoreExit(err error) error {
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		return nil
	}
	return err
}

// http measures the server over HTTP.
func (b *bench) http(ctx context.Context) (err error) {
	s, err := b.start(ctx, b.room("http"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(syscall.SIGTERM)) }()
	setup, err := dialThin(ctx, s.addr)
	if err != nil {
		return err
	}
	defer setup.conn.Close()
	for client := range b.Clients + 1 {
		if err := setup.do(fmt.Appendf(nil, "mkdir -p /m/%d", client)); err != nil {
			return err
		}
	}
	for i := range 10 {
		if err := setup.do(fmt.Appendf(nil, "mkdir -p /listed/%d", i)); err != nil {
			return err
		}
	}
	list := func(buf []byte, _, _ int) []byte { return append(buf, "ls /listed"...) }
	mkdir := func(buf []byte, client, i int) []byte {
		return strconv.AppendInt(append(strconv.AppendInt(append(buf, "mkdir /m/"...), int64(client), 10), '/'), int64(i), 10)
	}
	b.say("ls over HTTP")
	if b.r.HTTP.List, err = closedLoop(ctx, s.addr, b.Clients, b.Duration, list); err != nil {
		return err
	}
	b.say("mkdir over HTTP")
	if b.r.HTTP.Mkdir, err = closedLoop(ctx, s.addr, b.Clients, b.Duration, mkdir); err != nil {
		return err
	}
	b.say("ls over HTTP while one client makes directories")
	beside := make(chan error, 1)
	go func() {
		var err error
		b.r.HTTP.MkdirsBeside, err = closedLoop(ctx, s.addr, 1, b.Duration, func(buf []byte, _, i int) []byte {
			return fmt.Appendf(buf, "mkdir /listed/0/%d", i)
		})
		beside <- err
	}()
	b.r.HTTP.ListBeside, err = closedLoop(ctx, s.addr, b.Clients, b.Duration, list)
	if err = errors.Join(err, <-beside); err != nil {
		return err
	}
	// Reads without the writer once more, so that a machine that became slower or quicker
	// meanwhile is not taken for the writer's work.
	after, err := closedLoop(ctx, s.addr, b.Clients, b.Duration, list)
	b.r.HTTP.List = (b.r.HTTP.List + after) / 2
	return err
}

// recovery measures how long a server takes to have its directories back after it was
// killed.
func (b *bench) recovery(ctx context.Context) error {
	dir := b.room("recovery")
	b.say("making %d directories", b.Dirs)
	if err := fill(ctx, dir, b.Dirs); err != nil {
		return err
	}
	b.say("recovering them")
	start := time.Now()
	s, err := b.start(ctx, dir)
	if err != nil {
		return err
	}
	t, err := dialThin(ctx, s.addr)
	if err == nil {
		err = errors.Join(t.do([]byte("stat /d/0")), t.conn.Close())
	}
	b.r.Recovery.Seconds, b.r.Recovery.Dirs = time.Since(start).Seconds(), b.Dirs
	stat, problem := procfs.ReadStat(s.cmd.Process.Pid)
	b.r.Recovery.Resident = stat.Resident
	return errors.Join(err, problem, s.stop(syscall.SIGKILL), os.RemoveAll(dir))
}
