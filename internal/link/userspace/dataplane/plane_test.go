package dataplane

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link"
	"skerry/internal/link/userspace/device"
	"skerry/internal/link/userspace/packet"
	"skerry/internal/link/userspace/shaper"
)

// cable is a link between two pairs of sockets, which preserve packet boundaries like devices.
type cable struct {
	plane *Plane
	link  *Link
	a, b  int // the nodes' ends
}

func connect(t *testing.T, ab, ba link.Quality) *cable {
	t.Helper()
	return connectWith(t, Options{Threads: 2, Memory: 16 << 20}, ab, ba)
}

func connectWith(t *testing.T, o Options, ab, ba link.Quality) *cable {
	t.Helper()
	p, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	var ends [2][2]int
	for i := range ends {
		if ends[i], err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		for _, fd := range ends[i] {
			t.Cleanup(func() { unix.Close(fd) })
			for _, o := range []int{unix.SO_SNDBUF, unix.SO_RCVBUF} {
				if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, o, 1<<20); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	l := NewLink(link.Spec{ID: "a~b", AB: ab, BA: ba, Seed: 1}, &device.Port{FD: ends[0][1]}, &device.Port{FD: ends[1][1]})
	if err := p.Add(t.Context(), []*Link{l}); err != nil {
		t.Fatal(err)
	}
	return &cable{plane: p, link: l, a: ends[0][0], b: ends[1][0]}
}

// stats waits until the packet in delivery is counted.
func (c *cable) stats(t *testing.T) link.Stats {
	t.Helper()
	if err := c.plane.runTask(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	return c.link.Stats()
}

// tcp is a packet with a payload, a super-packet if size is set.
func tcp(payload, size int) []byte {
	b := make([]byte, packet.VnetHeader+40+payload)
	b[0] = 1 // needs checksum
	binary.NativeEndian.PutUint16(b[6:], 20)
	binary.NativeEndian.PutUint16(b[8:], 16)
	if size > 0 {
		b[1] = 1 // TCP over IPv4
		binary.NativeEndian.PutUint16(b[4:], uint16(size))
	}
	ip := b[packet.VnetHeader:]
	ip[0], ip[9], ip[32] = 0x45, 6, 5<<4
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	for i := range payload {
		ip[40+i] = byte(i)
	}
	return b
}

func send(t *testing.T, fd int, b []byte) {
	t.Helper()
	if _, err := unix.Write(fd, b); err != nil {
		t.Fatal(err)
	}
}

// receive waits for the next packet, nil after a timeout.
func receive(t *testing.T, fd int, within time.Duration) []byte {
	t.Helper()
	buffer := make([]byte, packet.Largest)
	deadline := time.Now().Add(within)
	for {
		n, err := unix.Read(fd, buffer)
		if err == nil {
			return buffer[:n]
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil
		}
		timeout := unix.NsecToTimespec(int64(left))
		if _, err := unix.Ppoll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, &timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

const soon = 5 * time.Second

func TestSuperPacketPassesWhole(t *testing.T) {
	c := connect(t, link.Quality{Latency: time.Millisecond}, link.Quality{})
	want := tcp(40_000, 1000)
	send(t, c.a, want)
	if got := receive(t, c.b, soon); !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, want the %d that were sent", len(got), len(want))
	}
	if s := c.stats(t); s.AB.Packets != 40 || s.AB.Bytes != 40*1040 || s.BA.Packets != 0 {
		t.Errorf("counters %+v", s)
	}
}

// After a rate increase, queued packets leave at the new rate, not at the rate of their arrival.
func TestRateRiseDrainsTheQueue(t *testing.T) {
	slow := link.Quality{Bandwidth: 8000, Queue: 1 << 20} // 1 s for 1000 bytes
	c := connect(t, slow, link.Quality{})
	const packets = 20
	for range packets {
		send(t, c.a, tcp(960, 0))
	}
	for c.superPackets() < packets {
		runtime.Gosched()
	}
	if err := c.plane.Set(t.Context(), []LinkSetting{{Link: c.link, AB: shaper.Compile(link.Quality{})}}); err != nil {
		t.Fatal(err)
	}
	for i := range packets {
		if got := receive(t, c.b, soon); got == nil {
			t.Fatalf("packet %d has not arrived %v after the limit was removed", i, soon)
		}
	}
}

func TestLossTakesSegmentsNotSuperPackets(t *testing.T) {
	c := connect(t, link.Quality{Loss: 0.1}, link.Quality{})
	const supers, segments = 50, 40
	whole := 0
	for n := range uint64(supers) {
		send(t, c.a, tcp(segments*1000, 1000))
		for c.arrived() < (n+1)*segments {
			runtime.Gosched()
		}
		for b := receive(t, c.b, 0); b != nil; b = receive(t, c.b, 0) {
			if b[1] != 0 {
				whole++
			}
		}
	}
	s := c.link.Stats().AB
	if s.DroppedLoss == 0 || s.DroppedLoss%segments == 0 || s.DroppedLoss > supers*segments/5 {
		t.Errorf("%d of %d packets were lost, want about a tenth", s.DroppedLoss, supers*segments)
	}
	if whole == 0 {
		t.Error("segments with the same outcome were split")
	}
}

// arrived is the number of packets with an outcome.
func (c *cable) arrived() uint64 {
	s := c.link.Stats().AB
	return s.Packets + s.DroppedLoss + s.DroppedQueue
}

func TestDuplicate(t *testing.T) {
	c := connect(t, link.Quality{Duplicate: 1, Latency: time.Millisecond}, link.Quality{})
	want := tcp(100, 0)
	send(t, c.a, want)
	for range 2 {
		if got := receive(t, c.b, soon); !bytes.Equal(got, want) {
			t.Fatalf("%x arrived", got)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	c := connect(t, link.Quality{Latency: time.Hour}, link.Quality{})
	const packets = 600 // of 64 KiB, where 16 MiB are allowed
	for n := range uint64(packets) {
		send(t, c.a, tcp(60_000, 1000))
		for c.superPackets() <= n {
			runtime.Gosched()
		}
	}
	if dropped := c.link.Stats().AB.DroppedQueue; dropped < 300*60 || dropped > packets*60 {
		t.Errorf("%d packets were dropped for want of memory", dropped)
	}
	if err := c.plane.Remove(t.Context(), []*Link{c.link}); err != nil {
		t.Fatal(err)
	}
	var used int64
	if err := c.plane.runTask(t.Context(), func() { used = c.plane.pool.packets.Used() }); err != nil {
		t.Fatal(err)
	}
	if used > 2*packet.Largest { // those that devices are read into
		t.Errorf("%d bytes are in use when no link is left", used)
	}
}

// superPackets returns the number of super-packets read by the plane.
func (c *cable) superPackets() uint64 {
	var n uint64
	err := c.plane.runTask(context.Background(), func() { n = c.link.ab.droppedQueue.Load()/60 + uint64(c.link.ab.shaper.Len()) })
	if err != nil {
		return 1 << 62
	}
	return n
}

func TestSteadyTrafficAllocatesNothing(t *testing.T) {
	c := connect(t, link.Quality{Latency: 50 * time.Microsecond}, link.Quality{})
	big, small, buffer := tcp(30_000, 1000), tcp(100, 0), make([]byte, packet.Largest)
	round := func(n int) {
		for range n {
			for _, b := range [][]byte{big, small} {
				unix.Write(c.a, b)
				for {
					if n, _ := readRaw(c.b, buffer); n == len(b) {
						break
					}
				}
			}
		}
	}
	round(200)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 2000
	round(n)
	runtime.ReadMemStats(&after)
	if allocated := after.Mallocs - before.Mallocs; allocated > n/20 { // the runtime's own
		t.Errorf("%d packets cost %d allocations", 2*n, allocated)
	}
}

func TestStoppedPlaneAnswers(t *testing.T) {
	p, err := Start(Options{Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.Set(t.Context(), nil); !errors.Is(err, ErrStopped) {
		t.Errorf("Set on a stopped plane: %v", err)
	}
}

func TestAddIsAllOrNone(t *testing.T) {
	p, err := Start(Options{Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	ports := make([]*device.Port, 3)
	for i := range ports {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		ports[i] = &device.Port{FD: int(r.Fd())}
	}
	directory, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	impossible := &device.Port{FD: int(directory.Fd())} // not pollable
	good := NewLink(link.Spec{ID: "good"}, ports[0], ports[1])
	bad := NewLink(link.Spec{ID: "bad"}, ports[2], impossible)
	if err := p.Add(t.Context(), []*Link{good, bad}); err == nil {
		t.Fatal("a directory was accepted as a device")
	}
	if err := p.Add(t.Context(), []*Link{good}); err != nil {
		t.Errorf("the valid link was partly created: %v", err)
	}
}

// A stream socket replaces a device: reads fail with EINVAL until it is connected.
func TestUnreadablePacketIsLost(t *testing.T) {
	c := connect(t, link.Quality{}, link.Quality{})
	stream := func() int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	odd, listener := stream(), stream()
	address := &unix.SockaddrUnix{Name: filepath.Join(t.TempDir(), "s")}
	if err := errors.Join(unix.Bind(listener, address), unix.Listen(listener, 1)); err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range pair {
		t.Cleanup(func() { unix.Close(fd) })
	}
	l := NewLink(link.Spec{ID: "odd~b"}, &device.Port{FD: odd}, &device.Port{FD: pair[1]})
	if err := c.plane.Add(t.Context(), []*Link{l}); err != nil {
		t.Fatal(err)
	}
	for l.Stats().AB.DroppedLoss == 0 {
		if err := c.plane.runTask(t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Connect(odd, address); err != nil {
		t.Fatal(err)
	}
	node, _, err := unix.Accept(listener)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(node) })
	want := tcp(100, 0)
	send(t, node, want)
	if got := receive(t, pair[0], soon); !bytes.Equal(got, want) {
		t.Errorf("got %x after failed reads", got)
	}
}
