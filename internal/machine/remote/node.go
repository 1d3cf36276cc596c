package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"skerry/internal/kernel/cgroup"
	"skerry/internal/machine"
	"skerry/internal/machine/files"
	"skerry/internal/machine/host"
	"skerry/internal/machine/rpc"
)

// node is a node of a part; it is also embedded in container.
type node struct {
	m  *Machine
	of rpc.CallTarget
	is rpc.HostInfo
}

var (
	_ host.Host      = (*node)(nil)
	_ host.Published = (*container)(nil)
)

func (n *node) Name() string        { return n.is.Name }
func (n *node) Site() string        { return n.is.Site }
func (n *node) Addr() string        { return n.is.Addr }
func (n *node) Dir() string         { return n.is.Dir }
func (n *node) Files() files.System { return system{n.m, n.of} }

func (n *node) ClockOffset() time.Duration { return time.Duration(n.m.ahead.Load()) }

func (n *node) Usage() (host.Usage, error) {
	return callResult[host.Usage](context.Background(), n.m, "/host/Usage", n.of)
}

type container struct {
	*node
	as machine.Container
}

func (c *container) Listen() string { return c.as.Listen.String() }

func (c *container) Port(port int) int {
	if p, ok := c.as.Ports[port]; ok {
		return p
	}
	return port
}

var _ host.Controls = (*node)(nil)

func (n *node) control(ctx context.Context, method string, params ...any) error {
	return callEmpty(ctx, n.m, "/controls/"+method, n.of, params...)
}

func (n *node) Freeze(ctx context.Context) error { return n.control(ctx, "Freeze") }
func (n *node) Thaw() error                      { return n.control(context.Background(), "Thaw") }
func (n *node) MountDisk(bytes int64) error {
	return n.control(context.Background(), "MountDisk", bytes)
}
func (n *node) FillDisk() error { return n.control(context.Background(), "FillDisk") }
func (n *node) FreeDisk() error { return n.control(context.Background(), "FreeDisk") }
func (n *node) LimitDisk(l cgroup.DiskLimit) error {
	return n.control(context.Background(), "LimitDisk", l)
}
func (n *node) LimitCPU(cores float64) error {
	return n.control(context.Background(), "LimitCPU", cores)
}

func (n *node) Used() (used, throttled time.Duration, err error) {
	u, err := n.Usage()
	return u.CPU, u.Throttled, err
}

type process struct {
	m    *Machine
	of   rpc.CallTarget
	name string
	pid  int
	done chan struct{}
	err  error // how it ended; valid once done is closed
}

var _ host.Process = (*process)(nil)

// Start implements host.Host. The call's stream lasts until the process ends.
func (n *node) Start(ctx context.Context, c host.Command) (host.Process, error) {
	q := rpc.StartRequest{
		Name: c.Name, Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Log: c.Log, UID: c.UID, GID: c.GID,
		In: c.Stdin != nil, Out: c.Stdout != nil, Err: c.Stderr != nil, Joined: c.Stdout != nil && same(c.Stdout, c.Stderr),
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	starting := context.AfterFunc(ctx, end)
	a, err := n.m.beginCall(life, "/host/Start", n.of, input(c.Stdin), q)
	var begun rpc.StartedProcess
	if err == nil {
		err = errors.Join(json.Unmarshal(a.first, &begun), a.skipNewline())
	}
	if err != nil {
		end()
		if ctx.Err() != nil {
			err = fmt.Errorf("start %s on %s: %w", c.Name, n.is.Name, ctx.Err())
		}
		return nil, err
	}
	p := &process{
		m: n.m, of: rpc.CallTarget{Process: begun.Process}, name: c.Name + " on " + n.is.Name, pid: begun.PID, done: make(chan struct{}),
	}
	n.m.streams.Go(func() {
		defer end()
		defer a.Close()
		defer close(p.done)
		p.err = p.follow(a, c.Stdout, c.Stderr)
	})
	if !starting() { // too late: it would have no owner
		return nil, errors.Join(fmt.Errorf("start %s on %s: %w", c.Name, n.is.Name, ctx.Err()), p.Kill())
	}
	return p, nil
}

// input returns standard input as a stream that can be closed during a read; nil for none. As with a local process, a read
// from the source may outlast the program.
func input(from io.Reader) io.Reader {
	if from == nil {
		return nil
	}
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, from)
		w.CloseWithError(err)
	}()
	return r
}

// same reports whether two writers are identical, so that the order of their output is kept.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }() // types that cannot be compared
	return a == b
}

// follow copies the process's output and returns its exit error.
func (p *process) follow(a *openCall, out, err io.Writer) error {
	for {
		kind, data, broken := rpc.ReadFrame(a.rest)
		if broken != nil {
			return p.m.lostError(p.name, broken)
		}
		switch kind {
		case rpc.Out:
			_, _ = out.Write(data) // a reader that is gone does not stop the process
		case rpc.Err:
			_, _ = err.Write(data)
		case rpc.Ended:
			return p.ended(data)
		}
	}
}

func (p *process) ended(told []byte) error {
	if len(told) == 0 {
		return nil
	}
	var f rpc.Failure
	if err := json.Unmarshal(told, &f); err != nil {
		return fmt.Errorf("%s: understanding how %s ended: %w", p.m.name, p.name, err)
	}
	return fmt.Errorf("%s: %w", p.m.name, f.Err())
}

func (p *process) PID() int { return p.pid }

func (p *process) Done() <-chan struct{} { return p.done }

func (p *process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) Stop(ctx context.Context, grace time.Duration) error {
	if p.over() {
		return nil
	}
	err := callEmpty(ctx, p.m, "/process/Stop", p.of, grace)
	if err != nil && ctx.Err() != nil {
		return p.Kill()
	}
	return p.waited(err)
}

func (p *process) Kill() error { return p.kill("Kill") }

func (p *process) KillFamily() error { return p.kill("KillFamily") }

func (p *process) kill(method string) error {
	if p.over() {
		return nil
	}
	return p.waited(callEmpty(context.Background(), p.m, "/process/"+method, p.of))
}

// waited waits for the stream's end, so that all output has been copied.
func (p *process) waited(err error) error {
	if err == nil {
		<-p.done
	}
	return err
}

func (p *process) Signal(s syscall.Signal) error {
	if p.over() {
		return nil
	}
	return callEmpty(context.Background(), p.m, "/process/Signal", p.of, s)
}

// Tail returns "" if the machine is lost.
func (p *process) Tail(n int) string {
	text, err := callResult[string](context.Background(), p.m, "/process/Tail", p.of, n)
	if err != nil {
		return ""
	}
	return text
}
