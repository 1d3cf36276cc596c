package linktest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"skerry/internal/link"
)

// tcp checks that streams arrive complete with every kind of impairment.
func (s *suite) tcp(t *testing.T) {
	all := link.Quality{
		Latency: 2 * time.Millisecond, Jitter: time.Millisecond, Bandwidth: 100_000_000,
		Loss: 0.01, Duplicate: 0.01, Reorder: 0.01, Corrupt: 0.005,
		Burst: &link.GilbertElliott{P: 0.001, R: 0.5, K: 1},
	}
	tests := []struct {
		name    string
		quality link.Quality
		size    int64
	}{
		{"unlimited", perfect, 64 << 20},
		{"delayed", link.Quality{Latency: 5 * time.Millisecond}, 16 << 20},
		{"limited", link.Quality{Latency: 5 * time.Millisecond, Bandwidth: 50_000_000}, 4 << 20},
		{"impaired", all, 1 << 20},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.wire(t, tt.quality, tt.quality).transfer(s.scaleBytes(tt.size), nil)
		})
	}
	t.Run("impaired under way", func(t *testing.T) {
		w := s.wire(t, link.Quality{Bandwidth: 200_000_000}, perfect)
		w.transfer(s.scaleBytes(4<<20), func() error { return w.change(&all, &all) })
	})
}

// scaleBytes scales a transfer to the speed of the machine.
func (s *suite) scaleBytes(bytes int64) int64 { return bytes / int64(s.pace) }

// ioTimeout is the longest time without progress. The duration of a transfer depends on the machine: a virtual one with
// a twentieth of a processor needs minutes.
const ioTimeout = 60 * time.Second

// deadlineConn is a connection whose reads and writes fail after a standstill.
type deadlineConn struct{ net.Conn }

func (c deadlineConn) Read(p []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(ioTimeout))
	return c.Conn.Read(p)
}

func (c deadlineConn) Write(p []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(ioTimeout))
	return c.Conn.Write(p)
}

// transfer sends size random bytes over TCP and compares their hashes. It calls midway after half of the bytes.
func (w *wire) transfer(size int64, midway func() error) {
	w.t.Helper()
	var listener net.Listener
	err := w.far.Do(func() (err error) {
		listener, err = net.Listen("tcp4", w.far.addr+":0")
		return err
	})
	if err != nil {
		w.t.Fatalf("listening: %v", err)
	}
	defer listener.Close()
	sent, got := sha256.New(), sha256.New()
	var group errgroup.Group
	group.Go(func() error {
		listener.(*net.TCPListener).SetDeadline(time.Now().Add(ioTimeout))
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = io.Copy(got, deadlineConn{conn})
		return err
	})
	group.Go(func() error {
		conn, err := w.connect(listener.Addr().(*net.TCPAddr))
		if err != nil {
			return err
		}
		defer conn.Close()
		random := io.TeeReader(rand.NewChaCha8([32]byte{}), sent)
		if _, err = io.CopyN(deadlineConn{conn}, random, size/2); err != nil {
			return err
		}
		if midway != nil {
			if err := midway(); err != nil {
				return err
			}
		}
		_, err = io.CopyN(deadlineConn{conn}, random, size-size/2)
		return err
	})
	if err := group.Wait(); err != nil {
		w.t.Fatalf("transferring %d bytes: %v", size, err)
	}
	if want, have := fmt.Sprintf("%x", sent.Sum(nil)), fmt.Sprintf("%x", got.Sum(nil)); want != have {
		w.t.Errorf("the bytes that arrived have SHA-256 %s, those sent %s", have, want)
	}
}

func (w *wire) connect(to *net.TCPAddr) (conn *net.TCPConn, err error) {
	err = w.near.Do(func() (err error) {
		conn, err = net.DialTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(w.near.addr)}, to)
		return err
	})
	return conn, err
}
