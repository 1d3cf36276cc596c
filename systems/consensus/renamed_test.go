package consensus_test

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"skerry/systems/consensus"
)

// TestMemberOfAnotherLogIsDisconnected checks that a member disconnects peers with another log as soon as its own
// log has an identity. Incoming and outgoing connections may have been set up before.
func TestMemberOfAnotherLogIsDisconnected(t *testing.T) {
	g := newGroup(t, three, nil)
	for _, m := range g.members {
		m.close()
	}
	for _, m := range g.members {
		if err := os.RemoveAll(m.cfg.Dir); err != nil {
			t.Fatal(err)
		}
		m.applied, m.list = 0, nil
	}
	first, second, other := g.members[0], g.members[1], g.members[2]
	l, err := net.Listen("tcp", other.cfg.Self.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	first.start() // one of three members cannot name its log

	t.Log("the member dials a peer with another log")
	from := meet(t, l)
	if log := from.welcome(t, "another"); log != "" {
		t.Fatalf("a single member named the log %q", log)
	}
	t.Log("the peer with another log dials the member")
	to := call(t, first.cfg.Self.Addr, map[string]any{"protocol": 1, "cluster": "test", "from": 3, "to": 1, "names": true, "log": "another", "addr": other.cfg.Self.Addr})
	if refusal := to.read(t)["refusal"]; refusal != nil {
		t.Fatalf("refused by a member whose log has no identity: %v", refusal)
	}

	second.start()
	g.named(first)
	from.ends(t)
	to.ends(t)
	for again := meet(t, l); ; again = meet(t, l) {
		if log := again.welcome(t, "another"); log != "" && log == g.named(first).Log {
			return // the peer sends its identity and is refused by a real member
		}
	}
}

// wire is a raw connection that speaks the protocol without a node.
type wire struct{ net.Conn }

func call(t *testing.T, addr string, hello map[string]any) wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	w := wire{conn}
	w.write(t, hello)
	return w
}

func meet(t *testing.T, l net.Listener) wire {
	t.Helper()
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return wire{conn}
}

// welcome reads a hello, answers as a member of the given log, and returns the log named in the hello.
func (w wire) welcome(t *testing.T, log string) string {
	t.Helper()
	said, _ := w.read(t)["log"].(string)
	w.write(t, map[string]any{"log": log})
	return said
}

func (w wire) write(t *testing.T, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)); err != nil {
		t.Fatal(err)
	}
}

func (w wire) read(t *testing.T) (v map[string]any) {
	t.Helper()
	var n [4]byte
	if _, err := io.ReadFull(w, n[:]); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, binary.LittleEndian.Uint32(n[:]))
	if _, err := io.ReadFull(w, b); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// ends waits until the other side closes the connection. Meanwhile it sends pings, as a member does.
func (w wire) ends(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(patience)
	w.SetReadDeadline(deadline)
	ping := []byte{5, 0, 0, 0, consensus.FramePing, 0, 0, 0, 0}
	go func() { // returns when the connection closes, at the latest at the end of the test
		for {
			if _, err := w.Write(ping); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if _, err := io.Copy(io.Discard, w); err != nil && time.Now().After(deadline) {
		t.Fatalf("the connection was not closed: %v", err)
	}
}
