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
	Name: "cpu", Summary: "keeps cores of nodes busy, as \"yes > /dev/null\" does.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs:   Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, cores: 2}`}, Text: "processes on the node keep the cores busy, within its quota, as `yes > /dev/null` does"}}},
	Offers: []Offer{
		{ID: "cpu", Title: "Use up CPU", On: record.OnNodes, Targets: "nodes", Amount: &Amount{Key: "cores", Label: "cores", Value: "1", Number: true}},
	},
	newSpec: func() kindSpec { return new(CPU) },
}

// CPU keeps cores of nodes busy by a process of the node: within its quota, at the
// database's own priority.
type CPU struct {
	NodeSelector `yaml:",inline"`
	// Cores is how many of each node; 0.5 is half of one.
	Cores float64 `yaml:"cores" json:"cores" jsonschema:"default=1,exclusiveMinimum=0,maximum=1024"`
}

func (c *CPU) check(s Layout, fail failure) { c.NodeSelector.resolve(s, fail) }

func (c *CPU) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newStressAction(c.NodeSelector.draw(s, turn, busy, r), fmt.Sprintf("%s cores of %%s busy", formatFactor(c.Cores)), "cpu", formatFactor(c.Cores))
}

var memoryKind = Kind{
	Name: "memory", Summary: "takes memory of nodes.",
	Effect: record.Effect{On: record.OnNodes, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{nodes: Seoul, size: 1GiB}`},
		Text: `a process takes the memory and keeps it. If the node has less, the kernel ends this process first, and the event has failed. The machine keeps 512 MiB`}}},
	newSpec: func() kindSpec { return new(Memory) },
}

// Memory takes memory of nodes and keeps it. Within a node's limit it leaves less for the
// page cache and the database; where there is not enough, the kernel ends this process
// first, and the event has failed.
type Memory struct {
	NodeSelector `yaml:",inline"`
	// Size is how much of each node. The machine keeps 512 MiB whatever is asked for.
	Size unit.Bytes `yaml:"size" json:"size" jsonschema:"required,example=1GiB"`
}

func (m *Memory) check(s Layout, fail failure) {
	m.NodeSelector.resolve(s, fail)
	if m.Size == 0 {
		fail("size", "write 1GiB", "no memory is no event")
	}
}

func (m *Memory) draw(s Layout, turn int, busy map[string]bool, r *rand.Rand) action {
	return newStressAction(m.NodeSelector.draw(s, turn, busy, r), m.Size.String()+" of memory of %s taken", "memory", strconv.FormatInt(int64(m.Size), 10))
}

var networkLoadKind = Kind{
	Name: "network_load", Summary: "sends data between nodes, as iperf3 does.",
	Effect: record.Effect{On: record.OnStreams, Makes: record.Changed},
	Docs: Docs{SectionResources, []Row{{Examples: []string{`{from: Seoul, to: [Pune, Dubai], rate: 100mbit, protocol: tcp}`},
		Text: `streams go over the links that the database uses. The rate is of payload`}}},
	newSpec: func() kindSpec { return new(NetworkLoad) },
}

// NetworkLoad sends data from nodes to others, as iperf3 does: it fills the same links as
// the database.
type NetworkLoad struct {
	// From are the nodes that send, To those that they send to: each to each.
	From Names `yaml:"from" json:"from" jsonschema:"required"`
	// To are the nodes that they send to: each to each, but not to itself.
	To Names `yaml:"to" json:"to" jsonschema:"required"`
	// Rate is that of the payload of each stream; unlimited is as fast as it goes.
	Rate unit.Bandwidth `yaml:"rate" json:"rate" jsonschema:"required,example=100mbit"`
	// Protocol is tcp, which gives way to others, or udp, which does not.
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
		fail("rate", "give a rate, such as 100mbit", "datagrams as fast as they go would only fill the machine's memory")
	}
	linked := map[[2]string]bool{}
	for _, x := range s.Topology.Links {
		linked[[2]string{x.A, x.B}], linked[[2]string{x.B, x.A}] = true, true
	}
	streams := l.streams(s)
	for _, x := range streams {
		if !linked[x] {
			fail("to", "", "there is no link between %s and %s, and nodes do not forward for others", x[0], x[1])
			return
		}
	}
	if len(streams) == 0 {
		fail("to", "", "there is nobody to send to")
	}
}

// streams are the pairs of who sends and who takes.
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

// trafficAction is data on its way.
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

// stressAction is a program on each of some nodes.
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
	// programReady is how long a program may take until it does what it is to do: taking
	// gigabytes of memory takes seconds.
	readyTimeout = 30 * time.Second
	// programGrace is what it gets between the end of its input and SIGKILL.
	stopGrace = 2 * time.Second
	// keptComplaint is how much of its standard error an error shows, in bytes.
	stderrTail = 1 << 10
)

// programSet is what an event has running on nodes.
type programSet struct {
	started []*stressProgram
	once    sync.Once
	failed  chan struct{} // closed when one ended that was not asked to
	mu      sync.Mutex
	cause   error
	ending  bool
	waiting sync.WaitGroup
}

// stressProgram is one of them.
type stressProgram struct {
	node    string
	process host.Process
	input   *io.PipeWriter // it ends with this
	output  *io.PipeReader
	stderr  *tail.Tail
}

func newPrograms() *programSet { return &programSet{failed: make(chan struct{})} }

// start runs "skerry agent stress ARGS" on a node and returns what it says once it is ready.
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
		_ = in.Close()  // a process that ended by itself leaves its reader behind
		_ = out.Close() // and what reads of it
		s.reportLoss(fmt.Errorf("%s on %s: %w: %s", args[0], node, ErrEnded, x.stderr.String()))
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
		return "", fmt.Errorf("on %s: %w: %s", x.node, errors.Join(ErrEnded, err), x.stderr.String())
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

// stop ends all of them.
func (s *programSet) stop(ctx context.Context) error {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	var errs []error
	for _, x := range s.started {
		_ = x.input.Close() // a pipe's end closes without an error
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
