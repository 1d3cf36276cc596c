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

	"skerry/internal/base/advice"
	"skerry/internal/machine/host"
)

// AgentSpec is the input of a driver process.
type AgentSpec struct {
	Database   string            `json:"database"`
	Properties map[string]string `json:"properties"` // of the database's client
	Spec       Spec              `json:"spec"`
	// Env are environment variables of the process, NAME=VALUE. They may be secrets.
	Env []string `json:"-"`
	// Gated makes the drive wait at its gates for a "go" command.
	Gated bool `json:"together,omitempty"`
}

// message is one line of an agent's output. Exactly one member is set.
type message struct {
	Ready    bool       `json:"ready,omitempty"`
	Began    *time.Time `json:"began,omitempty"`
	Interval *Interval  `json:"interval,omitempty"`
	Result   *Result    `json:"result,omitempty"`
	Error    *failure   `json:"error,omitempty"` // with Result if a load is incomplete
}

type failure struct {
	Text   string  `json:"text"`
	Kind   string  `json:"kind,omitempty"`
	Result *Result `json:"result,omitempty"`
}

const (
	kindSpec       = "spec"
	kindIncomplete = "incomplete"
)

var errAgent = errors.New("load driver ended without a result")

const (
	stopCommand = "stop"
	goCommand   = "go"
	// gates is the number of gates of a drive: before and after the warm-up.
	gates = 2
	// sessionBuffer is the number of intervals (seconds) that a session buffers for a slow reader
	// before the driver blocks.
	sessionBuffer = 1024
	// agentGrace is the time that an agent gets beyond its operations' timeout to end.
	agentGrace = 5 * time.Second
)

// Session is a running driver process.
type Session struct {
	process   host.Process
	ready     chan struct{} // receives a value at each gate
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

// StartAgent starts exe ("agent load") on a node and sends it the spec. The end of ctx has the same
// effect as Stop, and kills a driver that does not end in time.
func StartAgent(ctx context.Context, node host.Host, exe string, spec AgentSpec) (*Session, error) {
	if err := spec.Spec.Validate(); err != nil {
		return nil, err
	}
	line, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode the load driver's spec: %w", err)
	}
	// These are kernel pipes, so that a driver whose parent was killed sees its stdin close.
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), in.Close())
	}
	process, err := node.Start(ctx, host.Command{
		Name: "load", Path: exe, Args: []string{"agent", "load"}, Env: spec.Env,
		Stdin: childIn, Stdout: childOut, Log: filepath.Join(node.Dir(), "load.log"),
	})
	if err != nil {
		for _, f := range []*os.File{childIn, childOut, in, out} {
			f.Close()
		}
		return nil, fmt.Errorf("start the load driver on %s: %w", node.Name(), err)
	}
	// A driver of this machine has its ends by now. The transport to another machine needs them
	// until its end.
	go func() { // ends with the process, which the session ends
		<-process.Done()
		childIn.Close()
		childOut.Close()
	}()
	s := &Session{
		process: process, node: node, stdin: in, timeout: spec.Spec.withDefaults().Timeout,
		ready: make(chan struct{}, gates), began: make(chan time.Time, 1),
		intervals: make(chan Interval, sessionBuffer), done: make(chan struct{}),
	}
	if _, err := in.Write(append(line, '\n')); err != nil {
		out.Close()
		return nil, errors.Join(fmt.Errorf("%w: %w%s", errAgent, err, s.logTail()), process.Kill())
	}
	go s.readOutput(ctx, out)
	return s, nil
}

// Began delivers the start of the measurement.
func (s *Session) Began() <-chan time.Time { return s.began }

// Intervals delivers one interval a second and is closed at the end.
func (s *Session) Intervals() <-chan Interval { return s.intervals }

// Stop ends the drive early. Wait returns the result.
func (s *Session) Stop() { s.sendCommand(stopCommand) }

func (s *Session) sendCommand(word string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil {
		// Writing to a driver that has already ended is not an error.
		_, _ = io.WriteString(s.stdin, word+"\n")
	}
}

// Wait waits for the end of the driver. Its errors are those of Run, and errAgent with the end of
// the driver's log.
func (s *Session) Wait() (Result, error) {
	<-s.done
	return s.result, s.err
}

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
		s.err = fmt.Errorf("%w: %w%s", errAgent, errors.Join(err, s.process.Err(), stopErr), s.logTail())
	case final.Result != nil:
		s.result = *final.Result
	default:
		s.err = final.Error.toError()
		if final.Error.Result != nil {
			s.result = *final.Error.Result
		}
	}
}

func (s *Session) readMessages(out io.Reader) (*message, error) {
	d := json.NewDecoder(bufio.NewReaderSize(out, 1<<16))
	for {
		var m message
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		m.adjustClock(s.node.ClockOffset())
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

// adjustClock converts times of a clock that is ahead to the clock of this process.
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
		_ = s.process.Kill() // readMessages then reaches the end of the output
	}
}

func (s *Session) logTail() string {
	if t := strings.TrimSpace(s.process.Tail(10)); t != "" {
		return "; end of its log:\n" + t
	}
	return ""
}

func (f *failure) toError() error {
	switch f.Kind {
	case kindSpec:
		return advice.WithText(f.Text, errSpec)
	case kindIncomplete:
		return advice.WithText(f.Text, ErrIncomplete)
	}
	return errors.New(f.Text)
}

// OpenDatabase returns the function that opens clients of a database, by name.
type OpenDatabase func(database string) (func(ctx context.Context, properties map[string]string) (Client, error), error)

// ServeAgent is the driver's side of a Session. It reads an AgentSpec from the first line of in,
// runs it, and writes intervals and the result to out, one JSON object per line. A line "stop" or
// the end of in stops the drive. ServeAgent returns errors of the communication only; those of the
// drive are in the output.
func ServeAgent(ctx context.Context, in io.Reader, out io.Writer, open OpenDatabase) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := bufio.NewReaderSize(in, 1<<16)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the load driver's spec: %w", err)
	}
	enc := json.NewEncoder(out)
	var spec AgentSpec
	if err := json.Unmarshal(first, &spec); err != nil {
		return fmt.Errorf("read the load driver's spec: %w", err)
	}
	client, err := open(spec.Database)
	if err != nil {
		return enc.Encode(message{Error: &failure{Text: err.Error()}})
	}
	goOn := make(chan struct{}, gates)
	go func() { // ends with the process at the latest: reading in cannot be interrupted
		defer cancel()
		for {
			line, err := lines.ReadString('\n')
			switch word := strings.TrimSpace(line); {
			case word == stopCommand || err != nil:
				return
			case word == goCommand:
				select {
				case goOn <- struct{}{}:
				default: // more commands than gates
				}
			}
		}
	}()

	var once sync.Once
	var broken error
	send := func(m message) {
		if err := enc.Encode(m); err != nil {
			// The parent is gone: stop, as at the end of in.
			once.Do(func() { broken = err; cancel() })
		}
	}
	if spec.Gated {
		spec.Spec.Gate = func() {
			send(message{Ready: true})
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
	}
	spec.Spec.Began = func(at time.Time) { send(message{Began: &at}) }
	result, err := Run(ctx, spec.Spec,
		func(ctx context.Context) (Client, error) { return client(ctx, spec.Properties) },
		func(i Interval) { send(message{Interval: &i}) })
	if broken != nil {
		return fmt.Errorf("write to the parent: %w", broken)
	}
	switch {
	case err == nil:
		return enc.Encode(message{Result: &result})
	case errors.Is(err, ErrIncomplete):
		return enc.Encode(message{Error: &failure{Text: err.Error(), Kind: kindIncomplete, Result: &result}})
	case errors.Is(err, errSpec):
		return enc.Encode(message{Error: &failure{Text: err.Error(), Kind: kindSpec}})
	}
	return enc.Encode(message{Error: &failure{Text: err.Error()}})
}
