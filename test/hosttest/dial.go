package hosttest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"skerry/internal/machine/host"
)

// serveVariable makes this program run as a server on a node.
const serveVariable = "SKERRY_TEST_SERVE"

// init runs the server before test flags are parsed, so that callers of the contract need no TestMain.
func init() {
	if network, addr, ok := strings.Cut(os.Getenv(serveVariable), " "); ok {
		fmt.Fprintln(os.Stderr, echo(network, addr))
		os.Exit(1)
	}
}

// echo listens, prints its address and echoes every connection, or sends as many bytes as the first line requests and
// closes the connection.
func echo(network, addr string) error {
	l, err := net.Listen(network, addr)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			in := bufio.NewReader(conn)
			line, err := in.ReadString('\n')
			if n, is := strings.CutPrefix(strings.TrimSpace(line), "leave after "); is && err == nil {
				if bytes, err := strconv.Atoi(n); err == nil {
					_, _ = conn.Write(make([]byte, bytes))
				}
				return
			}
			_, _ = io.Copy(conn, io.MultiReader(strings.NewReader(line), in)) // until the other side has sent everything
		}()
	}
}

// serve starts an echo server on a node.
func serve(t *testing.T, h host.Host, network, addr string) (process host.Process, at string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startAndRead(t, h, host.Command{Name: "server", Path: self, Env: []string{serveVariable + "=" + network + " " + addr}})
}

// Connections to a server on the node work in both directions, including half-close.
func testDial(t *testing.T, h host.Host) {
	for network, addr := range map[string]string{"tcp4": "127.0.0.1:0", "tcp": "127.0.0.1:0", "unix": filepath.Join(folder(t, h), "socket")} {
		p, at := serve(t, h, network, addr)
		conn, err := h.Dial(t.Context(), network, at)
		if err != nil {
			t.Errorf("%s %s: %v", network, at, err)
			continue
		}
		if _, err := io.WriteString(conn, "are you there?\n"); err != nil {
			t.Error(err)
		}
		if said, err := bufio.NewReader(conn).ReadString('\n'); err != nil || said != "are you there?\n" {
			t.Errorf("%s: got output %q, %v", network, said, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		conn, err = h.Dial(t.Context(), network, at)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s without a listener: %v, want ECONNREFUSED", network, err)
		}
		if err == nil {
			conn.Close()
		}
	}
}

// Data that a server sends before it closes a connection arrives. A client that writes afterwards gets no error until it
// reads.
func testLastWords(t *testing.T, h host.Host) {
	_, at := serve(t, h, "tcp4", "127.0.0.1:0")
	const words = 300_000
	for range 50 {
		conn, err := h.Dial(t.Context(), "tcp4", at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "leave after %d\n", words); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, conn); err != nil || n != words {
			t.Fatalf("received %[2]d of the last %[1]d bytes: %[3]v", words, n, err)
		}
		if _, err := io.WriteString(conn, "farewell\n"); err != nil {
			t.Errorf("writing to a closed peer: %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Names are refused: they would be resolved on the wrong machine.
func testNames(t *testing.T, h host.Host) {
	for _, addr := range []string{"localhost:80", net.JoinHostPort(h.Name(), "80"), "127.0.0.1", "127.0.0.1:http"} {
		if _, err := h.Dial(t.Context(), "tcp", addr); !errors.Is(err, host.ErrName) {
			t.Errorf("connecting to %s: %v, want ErrName", addr, err)
		}
	}
}

// The context limits connecting, but not the connection.
func testPatience(t *testing.T, h host.Host) {
	ended, cancel := context.WithCancel(t.Context())
	_, at := serve(t, h, "tcp4", "127.0.0.1:0")
	conn, err := h.Dial(ended, "tcp4", at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	if _, err := h.Dial(ended, "tcp4", at); !errors.Is(err, context.Canceled) {
		t.Errorf("connecting after the context ended: %v", err)
	}
	if _, err := io.WriteString(conn, "still?\n"); err != nil {
		t.Error(err)
	}
	if said, err := bufio.NewReader(conn).ReadString('\n'); err != nil || said != "still?\n" {
		t.Errorf("a connection after the end of its context: %q, %v", said, err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := h.Dial(late, "tcp4", at); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("connecting after the deadline: %v", err)
	}
}
