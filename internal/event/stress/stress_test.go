package stress

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// run runs a load and returns its first line, and a function that ends it.
func run(t *testing.T, load Stressor) (said string, end func() error) {
	t.Helper()
	in, input := io.Pipe()
	output, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := Run(t.Context(), in, out, load)
		out.CloseWithError(err)
		done <- err
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return err.Error(), func() error { return <-done }
	}
	return strings.TrimSpace(line), func() error {
		input.Close()
		return <-done
	}
}

func TestCPU(t *testing.T) {
	var before, after unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	said, end := run(t, CPU(0.5))
	if said != Ready {
		t.Errorf("got output %q, want %q", said, Ready)
	}
	// The load uses half a core in the long run, even on a busy machine.
	for used := time.Duration(0); used < 200*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if err := unix.Getrusage(unix.RUSAGE_SELF, &after); err != nil {
			t.Fatal(err)
		}
		used = time.Duration(after.Utime.Nano() - before.Utime.Nano())
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

func TestInvalidArguments(t *testing.T) {
	for name, load := range map[string]Stressor{
		"no cores": CPU(0), "not a number": CPU(math.NaN()), "no memory": Memory(0), "no such protocol": Send("icmp", "127.0.0.1:1", 1),
	} {
		if _, end := run(t, load); !errors.Is(end(), errInput) {
			t.Errorf("%s: not refused", name)
		}
	}
}

func TestTooMuchMemory(t *testing.T) {
	if _, end := run(t, Memory(1<<50)); !errors.Is(end(), errMemory) {
		t.Error("a load of 1 PiB of memory was accepted")
	}
}

func TestSendToSink(t *testing.T) {
	for _, network := range []string{"tcp", "udp"} {
		t.Run(network, func(t *testing.T) {
			said, end := run(t, Sink(network, "127.0.0.1"))
			port, ok := strings.CutPrefix(said, Ready+" ")
			if !ok {
				t.Fatalf("output of the sink: %q", said)
			}
			if _, endSend := run(t, Send(network, net.JoinHostPort("127.0.0.1", port), 1e6)); endSend() != nil {
				t.Error("the sender failed")
			}
			if err := end(); err != nil {
				t.Errorf("the sink: %v", err)
			}
		})
	}
}

// A sender makes up for delays, up to maxBacklog.
func TestRate(t *testing.T) {
	a, b := net.Pipe()
	const bps = 8 << 20 // a megabyte a second, 64 messages
	begin := time.Now()
	done := make(chan error, 1)
	go func() { done <- send(a, "tcp", bps) }()
	if _, err := io.ReadFull(b, make([]byte, 512<<10)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < 350*time.Millisecond {
		t.Errorf("sending 512 KiB took %v, want 0.5 s", took)
	}
	b.Close()
	if err := <-done; err == nil {
		t.Error("sending without a receiver succeeded")
	}
}
