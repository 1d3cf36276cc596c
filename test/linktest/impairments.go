package linktest

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"skerry/internal/link"
)

func (s *suite) loss(t *testing.T) {
	for _, p := range []float64{0.01, 0.3, 1} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			w := s.wire(t, link.Quality{Loss: p}, perfect)
			train := s.flood(4000)
			arrivals := w.send(train)
			checkOrder(t, arrivals)
			checkBinomial(t, "lost", train.Packets-len(arrivals), train.Packets, p)
			w.statsWhen("every packet delivered or lost", func(st link.Stats) bool {
				return st.AB.Packets == uint64(len(arrivals)) &&
					st.AB.DroppedLoss == uint64(train.Packets-len(arrivals)) && st.AB.DroppedQueue == 0
			})
			checkComplete(t, w.sendTo(w.far, w.near, s.flood(100)), 100) // the other direction is complete
		})
	}
}

// burst checks both figures of the Gilbert-Elliott model with H = 0 and K = 1: a share P/(P+R) of the packets is
// lost, in bursts of 1/R packets on average.
func (s *suite) burst(t *testing.T) {
	const p, r = 0.02, 0.2
	w := s.wire(t, link.Quality{Burst: &link.GilbertElliott{P: p, R: r, H: 0, K: 1}}, perfect)
	train := s.flood(8000)
	gone := findMissing(w.send(train), train.Packets)
	runs := 0
	for i, seq := range gone {
		if i == 0 || gone[i-1] != seq-1 {
			runs++
		}
	}
	// A cycle of a good and a bad spell lasts 1/P + 1/R packets. The spells deviate by sqrt(1-P)/P and sqrt(1-R)/R.
	cycles := float64(train.Packets) / (1/p + 1/r)
	deviation := math.Sqrt(cycles) * math.Hypot(math.Sqrt(1-p)/p, math.Sqrt(1-r)/r) / (1/p + 1/r)
	if math.Abs(float64(runs)-cycles) > sigmas*deviation {
		t.Errorf("%d bursts of loss, want %.0f ± %.0f", runs, cycles, sigmas*deviation)
	}
	if runs == 0 {
		return
	}
	mean, bound := float64(len(gone))/float64(runs), sigmas*math.Sqrt(1-r)/r/math.Sqrt(cycles)
	if math.Abs(mean-1/r) > bound {
		t.Errorf("bursts are of %.2f packets, want %.2f ± %.2f", mean, 1/r, bound)
	}
	t.Run("beside independent loss", func(t *testing.T) {
		const loss, h, k = 0.1, 0.5, 0.95
		w := s.wire(t, link.Quality{Loss: loss, Burst: &link.GilbertElliott{P: 0.5, R: 0.5, H: h, K: k}}, perfect)
		train := s.flood(4000)
		got := train.Packets - len(w.send(train))
		// With P = R = 1/2 each packet's state is independent.
		checkBinomial(t, "lost", got, train.Packets, 1-(1-loss)*(h+k)/2)
	})
}

// lossOfTCP checks that loss is drawn for each packet of a super-packet: one draw for the whole would lose far fewer.
func (s *suite) lossOfTCP(t *testing.T) {
	const p = 0.01
	lossy := link.Quality{Loss: p}
	check := func(t *testing.T, since, now link.Counters) {
		lost, arrived := now.DroppedLoss-since.DroppedLoss, now.Packets-since.Packets
		checkBinomial(t, "packets lost", int(lost), int(arrived+lost), p)
	}
	t.Run("from the start", func(t *testing.T) {
		w := s.wire(t, lossy, perfect)
		w.transfer(s.scaleBytes(32<<20), nil)
		check(t, link.Counters{}, w.stats().AB)
	})
	t.Run("under way", func(t *testing.T) {
		w := s.wire(t, perfect, perfect)
		var before link.Counters
		w.transfer(s.scaleBytes(64<<20), func() error {
			if err := w.change(&lossy, nil); err != nil {
				return err
			}
			stats, err := w.engine.Stats(t.Context(), w.id)
			if err == nil {
				before = stats[0].AB
			}
			return err
		})
		check(t, before, w.stats().AB)
	})
}

// seed sends the same train over links with equal and different seeds.
func (s *suite) seed(t *testing.T) {
	if s.Unseeded != "" {
		t.Skipf("not seeded: %s", s.Unseeded)
	}
	q := link.Quality{Loss: 0.2, Burst: &link.GilbertElliott{P: 0.05, R: 0.3, K: 1}}
	lost := func(seed uint64) []int {
		b := s.bench(t)
		spec := b.spec(0, q, perfect)
		spec.Seed = seed
		b.create(spec)
		train := s.flood(500)
		return findMissing(b.addressLink(0).send(train), train.Packets)
	}
	first, again, other := lost(1), lost(1), lost(2)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same seed lost other packets (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, other) {
		t.Error("another seed lost the same packets")
	}
}

func (s *suite) duplicate(t *testing.T) {
	const p = 0.2
	w := s.wire(t, link.Quality{Duplicate: p, Latency: 5 * time.Millisecond}, perfect)
	train := s.flood(2000)
	train.Linger = true
	arrivals := w.send(train)
	if gone := findMissing(arrivals, train.Packets); len(gone) > 0 {
		t.Errorf("%d packets were lost", len(gone))
	}
	checkOrder(t, arrivals)
	checkBinomial(t, "duplicates", len(arrivals)-train.Packets, train.Packets, p)
}

// down takes a link down while a train is in flight, and up again.
func (s *suite) down(t *testing.T) {
	const latency = 200 * time.Millisecond
	up := link.Quality{Latency: latency}
	gone := link.Quality{Latency: latency, Down: true}
	w := s.wire(t, up, up)
	train := s.flood(50)
	checkComplete(t, w.send(train), train.Packets)

	w.set(&gone, &gone)
	if got := w.send(train); len(got) > 0 {
		t.Errorf("%d packets crossed a link that is down", len(got))
	}
	w.statsWhen("50 packets delivered, 50 lost", func(st link.Stats) bool {
		return st.AB.Packets == 50 && st.AB.DroppedLoss == 50
	})

	w.set(&up, nil)
	checkComplete(t, w.send(train), train.Packets)
	if got := w.sendTo(w.far, w.near, train); len(got) > 0 {
		t.Errorf("%d packets crossed the direction that is still down", len(got))
	}
	w.set(nil, &up)
	checkComplete(t, w.sendTo(w.far, w.near, train), train.Packets)

	t.Run("packets in flight arrive", func(t *testing.T) {
		sent := s.flood(20)
		var once sync.Once
		sent.Complete = func(int) bool { // called after the last packet was sent
			once.Do(func() {
				if err := w.change(&gone, nil); err != nil {
					t.Error(err)
				}
			})
			return false
		}
		checkComplete(t, w.send(sent), sent.Packets)
	})
}

// corruptBytes is the payload size of the corruption test, in IP packets of 1428 bytes.
const corruptBytes = 1400

// corruptHeaders is the size of the headers that an engine may also corrupt: Ethernet, IPv4 and UDP.
const corruptHeaders = 14 + 20 + 8

// corrupt sends equal packets without UDP checksums and counts the flipped bits.
func (s *suite) corrupt(t *testing.T) {
	const n, p = 1000, 0.2
	w := s.wire(t, link.Quality{Corrupt: p}, perfect)
	want := bytes.Repeat([]byte{0xA5}, corruptBytes)
	whole, flipped, damaged := 0, 0, 0
	for _, got := range s.sendUnchecked(t, w, want, n) {
		distance := 0
		for i := range min(len(got), corruptBytes) {
			distance += bits.OnesCount8(got[i] ^ want[i])
		}
		switch {
		case len(got) != corruptBytes:
			damaged++ // its length field was corrupted
		case distance == 0:
			whole++
		case distance == 1:
			flipped++
		default:
			t.Errorf("a packet has %d bits flipped, want at most one", distance)
		}
	}
	checkBinomial(t, "packets corrupted", n-whole, n, p)
	if s.HeaderCorruption == "" {
		// The UDP header belongs to IP's payload.
		checkBinomial(t, "packets lost to a broken header", n-whole-flipped, n, p*8/(8+corruptBytes))
	} else {
		checkBinomial(t, "packets lost to a broken header", n-whole-flipped, n, p*corruptHeaders/(corruptHeaders+corruptBytes))
	}
}

// sendUnchecked sends n packets without checksums and returns the arrivals.
func (s *suite) sendUnchecked(t *testing.T, w *wire, text []byte, n int) [][]byte {
	t.Helper()
	receiver := w.listen(w.far)
	defer receiver.Close()
	sender := w.dial(w.near, receiver.LocalAddr().(*net.UDPAddr))
	defer sender.Close()
	raw, err := sender.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
				t.Errorf("switching UDP's checksum off: %v", err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	var got [][]byte
	const batch = 20 // fits the socket buffer
	for sent := 0; sent < n; sent += batch {
		for range batch {
			if _, err := sender.Write(text); err != nil {
				t.Fatalf("sending: %v", err)
			}
		}
		got = append(got, s.read(receiver, batch)...)
	}
	return got
}

// read returns up to n packets.
func (s *suite) read(conn *net.UDPConn, n int) [][]byte {
	var got [][]byte
	buf := make([]byte, 2*corruptBytes)
	for vain := 0; len(got) < n && vain < maxAttempts; {
		conn.SetReadDeadline(time.Now().Add(s.pace * 20 * time.Millisecond))
		size, err := conn.Read(buf)
		if err != nil {
			vain++ // the machine may have stopped
			continue
		}
		vain = 0
		got = append(got, bytes.Clone(buf[:size]))
	}
	return got
}

func (w *wire) listen(at *end) (conn *net.UDPConn) {
	w.t.Helper()
	err := at.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(at.addr), 0)))
		return err
	})
	if err != nil {
		w.t.Fatalf("listening at %s: %v", at.addr, err)
	}
	return conn
}

func (w *wire) dial(from *end, to *net.UDPAddr) (conn *net.UDPConn) {
	w.t.Helper()
	err := from.Do(func() (err error) {
		conn, err = net.DialUDP("udp4", nil, to)
		return err
	})
	if err != nil {
		w.t.Fatalf("reaching %s: %v", to, err)
	}
	return conn
}

// checksums sends corrupted packets with checksums. The receiver's kernel must detect each of them.
func (s *suite) checksums(t *testing.T) {
	const p = 0.5
	w := s.wire(t, link.Quality{Corrupt: p}, perfect)
	train := s.flood(400)
	train.Bytes = 1400
	before := w.checksumErrors()
	lost := train.Packets - len(w.send(train))
	checkBinomial(t, "packets refused", lost, train.Packets, p)
	if found := w.checksumErrors() - before; found > lost || found < lost*4/5 {
		t.Errorf("the receiver counted %d wrong UDP checksums, want nearly all of the %d packets it refused", found, lost)
	}
}

// checksumErrors returns UDP's InCsumErrors at the far end.
func (w *wire) checksumErrors() int {
	w.t.Helper()
	count := -1
	err := w.far.Do(func() error {
		file, err := os.Open("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		defer file.Close()
		var names []string
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if fields[0] != "Udp:" {
				continue
			}
			for i, name := range names {
				if name == "InCsumErrors" {
					count, err = strconv.Atoi(fields[i])
				}
			}
			names = fields
		}
		return err
	})
	if err == nil && count < 0 {
		err = fmt.Errorf("no InCsumErrors in net/snmp")
	}
	if err != nil {
		w.t.Fatalf("reading UDP's counters: %v", err)
	}
	return count
}
