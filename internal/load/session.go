package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/errs"
	"skerry/internal/machine/host"
)

// AgentSpec is what a driver in a process of its own is started with.
type AgentSpec struct {
	Database   string            `json:"database"`
	Properties map[string]string `json:"properties"` // for the database's client
	Spec       Spec              `json:"spec"`
	// Together makes it wait at its gates until it is told to go on.
	Gated bool `json:"together,omitempty"`
}

// message is one line of an agent's output: exactly one member is set.
type message struct {
	Ready    bool       `json:"ready,omitempty"`
	Began    *time.Time `json:"began,omitempty"`
	Interval *Interval  `json:"interval,omitempty"`
	Result   *Result    `json:"result,omitempty"`
	Error    *failure   `json:"error,omitempty"` // beside Result for a load that is incomplete
}

type failure struct {
	Text   string  `json:"text"`
	Kind   string  `json:"kind,omitempty"`
	Result *Result `json:"result,omitempty"`
}

// Kinds of failure that survive the way through a pipe.
const (
	kindSpec       = "spec"
	kindIncomplete = "incomplete"
)

// ErrAgent is a driver that ended without a result.
var ErrAgent = errors.New("the load driver died")

const (
	stopCommand = "stop"
	goCommand   = "go"
	// gates is how often a drive waits for those beside it: before the warm-up and after it.
	gates = 2
	// sessionBuffer is how many intervals (seconds) a session keeps for a reader
	// that is late before the driver has to wait for it.
	sessionBuffer = 1024
	// agentGrace is what an agent gets beyond its operations' timeout to end.
	agentGrace = 5 * time.Second
)

// Session is a driver at work in a process of its own.
type Session struct {
	process   host.Process
	ready     chan struct{} // at a gate
	began     chan time.Time
	intervals chan Interval
	timeout   time.Duration
	node      host.Host

	mu    sync.Mutex
	stdin *os.File // nil when closed

	done   chan struct{} // closed when result and err are final
	result Result
	err    error
}

// StartAgent starts exe ("agent load") on a node and gives it its spec. The end of ctx
// ends the session as Stop does, and kills a driver that does not follow.
func StartAgent(ctx context.Context, node host.Host, exe string, spec AgentSpec) (*Session, error) {
	if err := spec.Spec.Validate(); err != nil {
		return nil, err
	}
	line, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the load driver's spec: %w", err)
	}
	// Pipes of the kernel, not of this process: a driver whose parent was killed
	// sees its stdin close.
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), in.Close())
	}
	process, err := node.Start(ctx, host.Command{
		Name: "load", Path: exe, Args: []string{"agent", "load"},
		Stdin: childIn, Stdout: childOut, Log: filepath.Join(node.Dir(), "load.log"),
	})
	if err != nil {
		for _, f := range []*os.File{childIn, childOut, in, out} {
			f.Close()
		}
		return nil, fmt.Errorf("starting the load driver on %s: %w", node.Name(), err)
	}
	// A driver of this machine has its ends by now; what carries those of another machine's needs
	// them to its end.
	go func() { // ends with the process, which the session ends
		<-process.Done()
		childIn.Close()
		childOut.Close()
	}()
	s := &Session{
		process: process, node: node, stdin: in, timeout: spec.Spec.withDefaults().Timeout,
		ready: make(chan struct{}, gates), began: make(chan time.Time, 1), intervals: make(chan Interval, sessionBuffer), done: make(chan struct{}),
	}
	if _, err := in.Write(append(line, '\n')); err != nil {
		out.Close()
		return nil, errors.Join(fmt.Errorf("%w: %w%s", ErrAgent, err, s.logTail()), process.Kill())
	}
	go s.readOutput(ctx, out)
	return s, nil
}

// Began delivers the moment at which the measurement began, once it has.
func (s *Session) Began() <-chan time.Time { return s.began }

// Intervals delivers one interval a second and is closed at the end.
func (s *Session) Intervals() <-chan Interval { return s.intervals }

// Stop tells the driver to end early. Wait has the result.
func (s *Session) Stop() { s.sendCommand(stopCommand) }

func (s *Session) sendCommand(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil {
		// A driver that has ended already does not read this: no error of ours.
		_, _ = io.WriteString(s.stdin, word+"\n")
	}
}

// Wait returns when the driver has ended. Its errors are those of Run, and ErrAgent
// with the last lines of its log.
func (s *Session) Wait() (Result, error) {
	<-s.done
	return s.result, s.err
}

// readOutput owns the agent's output until it ends.
func (s *Session) readOutput(ctx context.Context, out io.ReadCloser) {
	defer close(s.done)
	defer close(s.intervals)
	defer out.Close()

	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(ctx, ended) })

	final, err := s.readMessages(out)
	close(ended)
	watch.Wait()

	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), agentGrace)
	defer cancel()
	stopErr := s.process.Stop(stop, agentGrace)
	switch {
	case final == nil:
		s.err = fmt.Errorf("%w: %w%s", ErrAgent, errors.Join(err, s.process.Err(), stopErr), s.logTail())
	case final.Result != nil:
		s.result = *final.Result
	default:
		s.err = final.Error.toError()
		if final.Error.Result != nil {
			s.result = *final.Error.Result
		}
	}
}

// readMessages delivers intervals until the final message.
func (s *Session) readMessages(out io.Reader) (*message, error) {
	d := json.NewDecoder(bufio.NewReaderSize(out, 1<<16))
	for {
		var m message
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		m.adjustClock(s.node.Ahead())
		switch {
		case m.Ready:
			s.ready <- struct{}{}
		case m.Began != nil:
			s.began <- *m.Began
		case m.Interval != nil:
			s.intervals <- *m.Interval
		default:
			return &m, nil
		}
	}
}

// adjustClock has what a driver says by a clock that is ahead be by this process's.
func (m *message) adjustClock(ahead time.Duration) {
	if m.Began != nil {
		*m.Began = m.Began.Add(-ahead)
	}
	if m.Interval != nil {
		m.Interval.Start = m.Interval.Start.Add(-ahead)
	}
	if m.Result != nil {
		m.Result.Started = m.Result.Started.Add(-ahead)
	}
}

// watch ends the agent when ctx ends.
func (s *Session) watch(ctx context.Context, ended <-chan struct{}) {
	select {
	case <-ended:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.stdin.Close()
	s.stdin = nil
	s.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(s.timeout + agentGrace):
		_ = s.process.Kill() // consume then meets the end of its output
	}
}

func (s *Session) logTail() string {
	if t := strings.TrimSpace(s.process.Tail(10)); t != "" {
		return "; its last words:\n" + t
	}
	return ""
}

func (f *failure) toError() error {
	switch f.Kind {
	case kindSpec:
		return errs.As(f.Text, ErrSpec)
	case kindIncomplete:
		return errs.As(f.Text, ErrIncomplete)
	}
	return errors.New(f.Text)
}

// OpenDatabase finds the client of a database by its name.
type OpenDatabase func(database string) (func(ctx context.Context, properties map[string]string) (Client, error), error)

// ServeAgent is the other end of a Session: it reads an AgentSpec from the first line
// of in, drives it and writes intervals and the result to out, a JSON object a line. A
// line "stop" or the end of in ends it early. The error is that of talking to the
// parent; what became of the drive is told in the output.
func ServeAgent(ctx context.Context, in io.Reader, out io.Writer, open OpenDatabase) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := bufio.NewReaderSize(in, 1<<16)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the load driver's spec: %w", err)
	}
	enc := json.NewEncoder(out)
	var spec AgentSpec
	if err := json.Unmarshal(first, &spec); err != nil {
		return fmt.Errorf("reading the load driver's spec: %w", err)
	}
	client, err := open(spec.Database)
	if err != nil {
		return enc.Encode(message{Error: &failure{Text: err.Error()}})
	}
	goOn := make(chan struct{}, gates)
	go func() { // ends with the process at the latest: in cannot be interrupted
		defer cancel()
		for {
			line, err := lines.ReadString('\n')
			switch word := strings.TrimSpace(line); {
			case word == stopCommand || err != nil:
				return
			case word == goCommand:
				select {
				case goOn <- struct{}{}:
				default: // more often than there are gates
				}
			}
		}
	}()

	var once sync.Once
	var broken error
	tell := func(m message) {
		if err := enc.Encode(m); err != nil {
			// Nobody listens any more: end, as when in ends.
			once.Do(func() { broken = err; cancel() })
		}
	}
	if spec.Gated {
		spec.Spec.Gate = func() {
			tell(message{Ready: true})
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
	}
	spec.Spec.Began = func(at time.Time) { tell(message{Began: &at}) }
	result, err := Run(ctx, spec.Spec,
		func(ctx context.Context) (Client, error) { return client(ctx, spec.Properties) },
		func(i Interval) { tell(message{Interval: &i}) })
	if broken != nil {
		return fmt.Errorf("writing to the parent: %w", broken)
	}
	switch {
	case err == nil:
		return enc.Encode(message{Result: &result})
	case errors.Is(err, ErrIncomplete):
		return enc.Encode(message{Error: &failure{Text: err.Error(), Kind: kindIncomplete, Result: &result}})
	case errors.Is(err, ErrSpec):
		return enc.Encode(message{Error: &failure{Text: err.Error(), Kind: kindSpec}})
	}
	return enc.Encode(message{Error: &failure{Text: err.Error()}})
}
