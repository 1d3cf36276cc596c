package loadbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"skerry/internal/base/linger"
)

// redisServer is one Redis without a cluster, on loopback, that keeps nothing.
type redisServer struct {
	cmd  *exec.Cmd
	port int
}

const redisStart = 10 * time.Second

func startRedis(ctx context.Context, o Options, dir string) (*redisServer, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	logFile := filepath.Join(dir, "redis.log")
	s := &redisServer{port: port, cmd: exec.Command(o.Server, "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", dir, "--logfile", logFile)}
	s.cmd.Env = append(os.Environ(), o.Env...)
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting redis: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, redisStart)
	defer cancel()
	for {
		if err := ping(ctx, port); err == nil {
			return s, nil
		}
		if err := linger.For(ctx, 10*time.Millisecond); err != nil {
			log, _ := os.ReadFile(logFile)
			return nil, errors.Join(fmt.Errorf("waiting for redis: %w\n%s", err, tail(log)), s.stop())
		}
	}
}

func (s *redisServer) stop() error {
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping redis: %w", err)
	}
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) { // killed, as it should be
		return fmt.Errorf("stopping redis: %w", err)
	}
	return nil
}

// freePort asks the kernel for one. Another process may bind it before Redis does, which
// then says so.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

func ping(ctx context.Context, port int) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	var answer [7]byte
	if _, err := c.Read(answer[:]); err != nil {
		return err
	}
	if string(answer[:]) != "+PONG\r\n" {
		return fmt.Errorf("redis answers %q", answer)
	}
	return nil
}
