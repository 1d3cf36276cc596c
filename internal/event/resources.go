package event

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"skerry/internal/base/tail"
	"skerry/internal/base/unit"
	"skerry/internal/event/stress"
	"skerry/internal/machine/host"
	"skerry/internal/record"
)

var cpuKind = Kind{
	Name: "cpu", Summary: "keeps CPU cores of nodes busy.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, cores: 2}`},
		Text: "processes on the node keep the cores busy, within its CPU quota"}}},
	Offers: []Offer{
		{ID: "cpu", Title: "Use up CPU", On: record.OnNodes, Targets: "nodes",
			Amount: &Amount{Key: "cores", Label: "cores", Value: "1", Number: true}},
	},
	newSpec: func() kindSpec { return new(CPU) },
}

// CPU keeps cores of nodes busy with a process on the node, within its quota and at the database's
// priority.
type CPU struct {
	NodeSelector `yaml:",inline"`
	// Cores is the number of busy cores on each node; 0.5 is half a core.
	Cores float64 `yaml:"cores" json:"cores" jsonschema:"default=1,exclusiveMinimum=0,maximum=1024"`
}

func (c *CPU) check(s Layout, fail failure) { c.NodeSelector.resolve(s, fail) }

func (c *CPU) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	cores := formatFactor(c.Cores)
	return newStressAction(c.NodeSelector.draw(s, turn, busy, r), cores+" cores of %s busy", "cpu", cores)
}

var memoryKind = Kind{
	Name: "memory", Summary: "allocates memory on nodes.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, size: 1GiB}`},
		Text: `a process allocates and holds the memory. If the node runs out of memory, the kernel kills this process first, ` +
			`and the event fails. The machine keeps 512 MiB free`}}},
	newSpec: func() kindSpec { return new(Memory) },
}

// Memory allocates memory on nodes and holds it. Less memory remains for the page cache and the
// database. If the node runs out of memory, the kernel kills this process first, and the event
// fails.
type Memory struct {
	NodeSelector `yaml:",inline"`
	// Size is the amount on each node. The machine always keeps 512 MiB free.
	Size unit.Bytes `yaml:"size" json:"size" jsonschema:"required,example=1GiB"`
}

func (m *Memory) check(s Layout, fail failure) {
	m.NodeSelector.resolve(s, fail)
	if m.Size == 0 {
		fail("size", "write 1GiB", "memory: size must be positive")
	}
}

func (m *Memory) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	nodes := m.NodeSelector.draw(s, turn, busy, r)
	return newStressAction(nodes, m.Size.String()+" of memory of %s taken", "memory", strconv.FormatInt(int64(m.Size), 10))
}

var networkLoadKind = Kind{
	Name: "network_load", Summary: "sends data between nodes, as iperf3 does.",
	Effect: record.Effect{On: record.OnStreams, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{from: Seoul, to: [Pune, Dubai], rate: 100mbit, protocol: tcp}`},
		Text: `the streams share the links with the database. The rate counts payload`}}},
	newSpec: func() kindSpec { return new(NetworkLoad) },
}

// NetworkLoad sends data between nodes, as iperf3 does. It shares the links with the database.
type NetworkLoad struct {
	// From are the sending nodes. Each sends to every node of to.
	From Names `yaml:"from" json:"from" jsonschema:"required"`
	// To are the receiving nodes. A node does not send to itself.
	To Names `yaml:"to" json:"to" jsonschema:"required"`
	// Rate is the payload rate of each stream; unlimited sends as fast as possible.
	Rate unit.Bandwidth `yaml:"rate" json:"rate" jsonschema:"required,example=100mbit"`
	// Protocol is tcp, which reacts to congestion, or udp, which does not.
	Protocol string `yaml:"protocol" json:"protocol" jsonschema:"default=tcp,enum=tcp,enum=udp"`
}

func (l *NetworkLoad) check(s Layout, fail failure) {
	for key, names := range map[string]Names{"from": l.From, "to": l.To} {
		if _, unknown := s.resolveNames(names); unknown != "" {
			fail(key, s.suggestName(unknown), "there is no node or site %q", unknown)
			return
		}
	}
	if l.Protocol == "udp" && l.Rate == 0 {
		fail("rate", "give a rate, such as 100mbit", "unlimited UDP would only fill the machine's memory")
	}
	linked := map[[2]string]bool{}
	for _, x := range s.Topology.Links {
		linked[[2]string{x.A, x.B}], linked[[2]string{x.B, x.A}] = true, true
	}
	streams := l.streams(s)
	for _, x := range streams {
		if !linked[x] {
			fail("to", "", "there is no direct link between %s and %s", x[0], x[1])
			return
		}
	}
	if len(streams) == 0 {
		fail("to", "", "no receiver other than the sender")
	}
}

func (l *NetworkLoad) streams(s Layout) (pairs [][2]string) {
	from, _ := s.resolveNames(l.From)
	to, _ := s.resolveNames(l.To)
	for _, a := range from {
		for _, b := range to {
			if a != b {
				pairs = append(pairs, [2]string{a, b})
			}
		}
	}
	return pairs
}

func (l *NetworkLoad) draw(s Layout, _ int, _ map[string]bool, _ *rand.Rand) action {
	rate := l.Rate.String()
	if l.Rate == 0 {
		rate = "as much as passes"
	}
	return &trafficAction{programSet: newPrograms(), streams: l.streams(s), protocol: l.Protocol, bps: int64(l.Rate), rate: rate}
}

type trafficAction struct {
	*programSet
	streams  [][2]string
	protocol string
	bps      int64
	rate     string
}

func (l *trafficAction) targets() []string {
	names := make([]string, len(l.streams))
	for i, x := range l.streams {
		names[i] = x[0] + ">" + x[1]
	}
	return names
}

func (l *trafficAction) what() string {
	return fmt.Sprintf("%s of %s load on %s", l.rate, l.protocol, joinNames(l.targets(), "streams"))
}

func (l *trafficAction) apply(ctx context.Context, w *Testbed, _ *progress) error {
	sinks := map[string]string{}
	for _, x := range l.streams {
		if sinks[x[1]] != "" {
			continue
		}
		h, err := w.Host(x[1])
		if err != nil {
			return err
		}
		port, err := l.start(ctx, w, x[1], "sink", l.protocol, h.Addr())
		if err != nil {
			return err
		}
		sinks[x[1]] = net.JoinHostPort(h.Addr(), port)
	}
	for _, x := range l.streams {
		if _, err := l.start(ctx, w, x[0], "send", l.protocol, sinks[x[1]], strconv.FormatInt(l.bps, 10)); err != nil {
			return err
		}
	}
	return nil
}

func (l *trafficAction) revert(ctx context.Context, _ *Testbed, _ *progress) error {
	return l.stop(ctx)
}

// stressAction runs one stress program on each node.
type stressAction struct {
	*programSet
	nodes []string
	text  string
	args  []string
}

func newStressAction(nodes []string, text string, args ...string) action {
	if len(nodes) == 0 {
		return nil
	}
	return &stressAction{programSet: newPrograms(), nodes: nodes, text: text, args: args}
}

func (h *stressAction) targets() []string { return h.nodes }
func (h *stressAction) what() string      { return fmt.Sprintf(h.text, joinNames(h.nodes, "nodes")) }

func (h *stressAction) apply(ctx context.Context, w *Testbed, _ *progress) error {
	for _, name := range h.nodes {
		if _, err := h.start(ctx, w, name, h.args...); err != nil {
			return err
		}
	}
	return nil
}

func (h *stressAction) revert(ctx context.Context, _ *Testbed, _ *progress) error { return h.stop(ctx) }

const (
	// readyTimeout bounds the start of a program. Allocating gigabytes of memory takes seconds.
	readyTimeout = 30 * time.Second
	stopGrace    = 2 * time.Second
	// stderrTail is how much standard error appears in an error, in bytes.
	stderrTail = 1 << 10
)

// programSet is the set of stress programs of an event.
type programSet struct {
	started []*stressProgram
	once    sync.Once
	failed  chan struct{} // closed when a program ended unexpectedly
	mu      sync.Mutex
	cause   error
	ending  bool
	waiting sync.WaitGroup
}

type stressProgram struct {
	node    string
	process host.Process
	input   *io.PipeWriter // closing it ends the program
	output  *io.PipeReader
	stderr  *tail.Tail
}

func newPrograms() *programSet { return &programSet{failed: make(chan struct{})} }

// start runs "skerry agent stress ARGS" on a node and returns the words after "ready".
func (s *programSet) start(ctx context.Context, w *Testbed, node string, args ...string) (string, error) {
	h, err := w.Host(node)
	if err != nil {
		return "", err
	}
	exe, err := w.Exe(node)
	if err != nil {
		return "", err
	}
	in, input := io.Pipe()
	output, out := io.Pipe()
	x := &stressProgram{node: node, input: input, output: output, stderr: tail.New(stderrTail)}
	x.process, err = h.Start(ctx, host.Command{
		Name: "stress", Path: exe, Args: append([]string{"agent", "stress"}, args...),
		Log: filepath.Join(h.Dir(), "stress.log"), Stdin: in, Stdout: out, Stderr: x.stderr,
	})
	if err != nil {
		return "", errors.Join(err, in.Close())
	}
	s.started = append(s.started, x)
	s.waiting.Go(func() {
		<-x.process.Done()
		_ = in.Close() // unblock the reader of a program that has ended
		_ = out.Close()
		s.reportLoss(fmt.Errorf("stress program %s on %s: %w: %s", args[0], node, errEnded, x.stderr.String()))
	})
	return x.awaitReady(ctx)
}

// awaitReady returns the words after "ready" on the program's first line.
func (x *stressProgram) awaitReady(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = x.output.CloseWithError(ctx.Err()) })
	defer stop()
	line, err := bufio.NewReader(x.output).ReadString('\n')
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), stress.Ready)
	if err != nil || !ok {
		return "", fmt.Errorf("start a stress program on %s: %w: %s", x.node, errors.Join(errEnded, err), x.stderr.String())
	}
	return strings.TrimSpace(rest), nil
}

func (s *programSet) reportLoss(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return
	}
	s.once.Do(func() {
		s.cause = why
		close(s.failed)
	})
}

func (s *programSet) stop(ctx context.Context) error {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	var errs []error
	for _, x := range s.started {
		_ = x.input.Close() // closing a pipe never fails
	}
	for _, x := range s.started {
		select {
		case <-x.process.Done():
		case <-time.After(stopGrace):
			errs = append(errs, x.process.Kill())
		case <-ctx.Done():
			errs = append(errs, x.process.Kill())
		}
		_ = x.output.Close()
	}
	s.waiting.Wait()
	s.started = nil
	return errors.Join(errs...)
}

func (s *programSet) ended() <-chan struct{} { return s.failed }

func (s *programSet) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}
