package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skerry/internal/database"
	"skerry/internal/host"
	"skerry/internal/load"
	"skerry/internal/testkit"
)

// loopHost is a node on loopback: all of 127.0.0.0/8 is this machine, so that every
// node of every test has an address of its own.
type loopHost struct {
	name, addr, dir string
}

// loopNets counts the test clusters of this process.
var loopNets atomic.Uint32

// loopHosts makes n nodes.
func loopHosts(t testing.TB, n int) []host.Host {
	t.Helper()
	net := loopNets.Add(1)
	pid := os.Getpid()
	hosts := make([]host.Host, n)
	for i := range hosts {
		hosts[i] = &loopHost{
			name: fmt.Sprintf("n%d", i+1),
			addr: fmt.Sprintf("127.%d.%d.%d", 1+(pid>>3)%126, (pid&7)<<5|int(net&31), i+1),
			dir:  t.TempDir(),
		}
	}
	return hosts
}

func (h *loopHost) Name() string               { return h.name }
func (h *loopHost) Addr() string               { return h.addr }
func (h *loopHost) Dir() string                { return h.dir }
func (h *loopHost) Netns() string              { return "/proc/self/ns/net" }
func (h *loopHost) Do(f func() error) error    { return f() }
func (h *loopHost) Usage() (host.Usage, error) { return host.Usage{}, nil }

// Start runs a program that dies with this test.
func (h *loopHost) Start(_ context.Context, c host.Command) (host.Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C"}, c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	p := &loopProcess{cmd: cmd, log: c.Log, done: make(chan struct{})}
	var log *os.File
	if c.Log != "" {
		var err error
		if log, err = os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
			return nil, err
		}
		defer log.Close()
		if cmd.Stdout == nil {
			cmd.Stdout = log
		}
		if cmd.Stderr == nil {
			cmd.Stderr = log
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

type loopProcess struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
	err  error
}

func (p *loopProcess) PID() int              { return p.cmd.Process.Pid }
func (p *loopProcess) Done() <-chan struct{} { return p.done }

func (p *loopProcess) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

func (p *loopProcess) Stop(_ context.Context, grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
		return p.Kill()
	}
}

func (p *loopProcess) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

func (p *loopProcess) Tail(n int) string {
	text, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

var (
	_ host.Host    = (*loopHost)(nil)
	_ host.Process = (*loopProcess)(nil)
)

// startCluster starts a cluster and stops it with the test.
func startCluster(t *testing.T, d *Redis, nodes []host.Host, o database.Options) *cluster {
	t.Helper()
	c, err := tryCluster(t, d, nodes, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c.(*cluster)
}

func tryCluster(t *testing.T, d *Redis, nodes []host.Host, o database.Options) (database.Cluster, error) {
	t.Helper()
	testkit.Need(t, testkit.Redis)
	in, err := d.Find("")
	if err != nil {
		t.Fatal(err)
	}
	return d.Start(t.Context(), database.Env{
		Nodes: nodes, Control: nodes[0], Installation: in, Options: o,
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil)),
		Progress: func(string) {},
	})
}

// open opens a client that is closed with the test.
func open(t *testing.T, d *Redis, properties map[string]string, extra ...string) *client {
	t.Helper()
	p := make(map[string]string)
	for k, v := range properties {
		p[k] = v
	}
	for i := 0; i < len(extra); i += 2 {
		p[extra[i]] = extra[i+1]
	}
	c, err := d.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.(*client)
}

func record(values ...string) []load.Field {
	var f []load.Field
	for i, v := range values {
		f = append(f, load.Field{Name: fmt.Sprintf("field%d", i), Value: []byte(v)})
	}
	return f
}

// running tells whether any redis-server of a node is left.
func running(h host.Host) bool {
	pids, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range pids {
		line, _ := os.ReadFile(p)
		if strings.Contains(string(line), h.Addr()+":") && strings.Contains(string(line), "redis-server") {
			return true
		}
	}
	return false
}
