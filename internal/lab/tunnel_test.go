package lab

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"skerry/internal/kernel/procfs"
	"skerry/internal/link/probe"
	"skerry/internal/link/tunnel"
	"skerry/internal/topology"
)

func TestTunnelsEncryptLinks(t *testing.T) {
	c := config(t, "wg")
	c.Topology.Encryption = topology.WireGuard
	l := mustUp(t, c)
	if inKernel := tunnel.CheckKernel() == nil; inKernel != (l.TunnelPID() == 0) {
		t.Errorf("the kernel has WireGuard: %t; the tunnels' process is %d", inKernel, l.TunnelPID())
	}
	a, errA := l.Node("n0")
	b, errB := l.Node("n1")
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	// A stream of full-size packets arrives completely: no packet exceeds the MTU of a tunnel.
	sent := make([]byte, 1<<20)
	rand.Read(sent)
	var listener net.Listener
	if err := b.Do(func() (err error) {
		listener, err = net.Listen("tcp", b.Addr()+":0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	got := make(chan []byte, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			got <- nil
			return
		}
		defer conn.Close()
		data, _ := io.ReadAll(conn) // the check below detects missing data
		got <- data
	}()
	before, err := l.Stats(t.Context(), "n0~n1")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Do(func() error {
		conn, err := net.DialTimeout("tcp", listener.Addr().String(), 10*time.Second)
		if err != nil {
			return err
		}
		_, err = conn.Write(sent)
		return errors.Join(err, conn.Close())
	}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(<-got, sent) {
		t.Error("the received data differ from the sent data")
	}
	after, err := l.Stats(t.Context(), "n0~n1")
	if err != nil {
		t.Fatal(err)
	}
	// The traffic crossed the link, with a small overhead.
	if carried := after[0].AB.Bytes - before[0].AB.Bytes; carried < 1<<20 {
		t.Errorf("the link carried %d bytes of %d", carried, len(sent))
	}
	// The link itself can be measured without the tunnel.
	x, y, err := l.Ends("n0~n1")
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine single packets may be early by 0.04 ms in each direction (dataplane's maxBackdate), the median not.
	rtts, err := probe.MeasureRTT(t.Context(), []probe.Pair{{From: x, To: y}, {From: a, To: b}}, 21, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rtts {
		if r.Lost > 0 || r.Median < 2*time.Millisecond {
			t.Errorf("round trip %d: %+v, want at least 2 ms", i, r)
		}
	}
}

func TestDownRemovesTunnels(t *testing.T) {
	c := config(t, "wggone")
	c.Topology.Encryption = topology.WireGuard
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	pid := l.TunnelPID()
	process, err := procfs.FindProcess(pid)
	if pid != 0 && err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pid != 0 && process.Alive() {
		t.Errorf("the tunnels' process %d is still running after Down", pid)
	}
}
