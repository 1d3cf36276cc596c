package hbase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/tail"
	"skerry/internal/machine/host"
)

// bridgeGrace is what a bridge gets to end by itself once its input has ended.
const bridgeGrace = 5 * time.Second

// command is how a bridge is run: a Java program and its arguments.
type command struct {
	java string
	args []string
}

// bridgeCommand runs the bridge with HBase's settings, and flags of its JVM besides those
// of all.
func bridgeCommand(javaPath, classpath, hostsFile string, heap int64, flags []string, settings []property) command {
	args := append(append(javaArguments(heap, false, hostsFile), flags...), "-cp", classpath, "bridge.Bridge")
	for _, p := range settings {
		args = append(args, p.name+"="+p.value)
	}
	return command{java: javaPath, args: args}
}

// pipes are both ends of a process's input and output.
type pipes struct {
	stdin, requests *os.File
	replies, stdout *os.File
}

func newPipes() (p pipes, err error) {
	if p.stdin, p.requests, err = os.Pipe(); err != nil {
		return p, err
	}
	if p.replies, p.stdout, err = os.Pipe(); err != nil {
		return p, errors.Join(err, p.stdin.Close(), p.requests.Close())
	}
	return p, nil
}

// closeChildEnds closes the ends that the process has.
func (p pipes) closeChildEnds() error { return errors.Join(p.stdin.Close(), p.stdout.Close()) }

// closeOwnEnds closes the ends that the process does not have.
func (p pipes) closeOwnEnds() error { return errors.Join(p.requests.Close(), p.replies.Close()) }

// startLocalBridge runs a bridge as a child of this process: it stands where this process
// stands, and ends with it, since its input does.
func startLocalBridge(c command) (*bridge, error) {
	p, err := newPipes()
	if err != nil {
		return nil, fmt.Errorf("starting the bridge: %w", err)
	}
	cmd := exec.Command(c.java, c.args...)
	last := tail.New(tailBytes)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, p.stdout, last
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the bridge: %w", err), p.closeChildEnds(), p.closeOwnEnds())
	}
	if err := p.closeChildEnds(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the bridge: %w", err), cmd.Process.Kill(), cmd.Wait(), p.closeOwnEnds())
	}
	replies := tailReader{p.replies, last.String}
	return newBridge(replies, p.requests, func() error {
		closing := p.requests.Close()
		late := time.AfterFunc(bridgeGrace, func() { _ = cmd.Process.Kill() }) // it may just have ended
		err := cmd.Wait()
		late.Stop()
		return errors.Join(closing, err, p.replies.Close())
	}), nil
}

// endPolicy is how long a bridge may take to end by itself once its input has ended, and
// what is done when it has done so without an error.
type endPolicy struct {
	grace time.Duration
	onEnd func()
}

// startBridgeOn runs a bridge on a node.
func startBridgeOn(ctx context.Context, h host.Host, c command, dir, log string, ends endPolicy) (*bridge, error) {
	p, err := newPipes()
	if err != nil {
		return nil, fmt.Errorf("starting the bridge on %s: %w", h.Name(), err)
	}
	process, err := h.Start(ctx, host.Command{Name: "bridge", Path: c.java, Args: c.args, Dir: dir, Log: log, Stdin: p.stdin, Stdout: p.stdout})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the bridge on %s: %w", h.Name(), err), p.closeChildEnds(), p.closeOwnEnds())
	}
	// Its ends stay open until it has ended: of one on another machine they are read and written here.
	ended := make(chan error, 1)
	go func() {
		<-process.Done()
		ended <- p.closeChildEnds()
	}()
	replies := tailReader{p.replies, func() string { return process.Tail(tailLines) }}
	deaf := sync.OnceValue(p.replies.Close)
	return newBridge(replies, p.requests, func() error {
		closing := p.requests.Close()
		var err error
		select {
		case <-process.Done():
			if process.Err() == nil {
				ends.onEnd()
			}
		case <-time.After(ends.grace):
			_ = deaf() // told below; who has stopped reading would keep the end from being noticed
			err = process.Kill()
		}
		return errors.Join(closing, err, <-ended, deaf())
	}), nil
}

// tailReader is an output whose end is told with the last that the process complained of.
type tailReader struct {
	io.Reader
	last func() string
}

func (t tailReader) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	if err != nil {
		if text := strings.TrimSpace(t.last()); text != "" {
			err = fmt.Errorf("%w; the last it said:\n%s", err, text)
		}
	}
	return n, err
}

const (
	tailLines = 12
	tailBytes = 4 << 10
)
