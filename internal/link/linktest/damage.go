package linktest

import (
	"bufio"
	"bytes"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/link"
)

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
