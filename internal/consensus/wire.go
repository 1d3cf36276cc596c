package consensus

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	// protocol is of handshakes and frames.
	protocol = 1
	// maxFrame bounds what a peer can make this member allocate, in bytes: a raft message
	// holds entries of at most 512 KiB, or one entry.
	maxFrame = MaxEntry + 2<<20
	// handshakeTime bounds a handshake.
	handshakeTime = 5 * time.Second
)

// hello begins each connection, from the side that made it.
type hello struct {
	Protocol int    `json:"protocol"`
	Cluster  string `json:"cluster"`
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	// Addr is where the sender is reached.
	Addr string `json:"addr"`
	// Snapshot asks for a state at this index or later; 0: the connection is for messages.
	Snapshot uint64 `json:"snapshot,omitempty"`
}

// welcome answers a hello.
type welcome struct {
	// Refusal is why not; empty: welcome.
	Refusal string `json:"refusal,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Index is of the state that follows.
	Index uint64 `json:"index,omitempty"`
}

// Reasons for refusals.
const (
	refusedCluster  = "cluster"
	refusedMember   = "member"
	refusedRemoved  = "removed"
	refusedProtocol = "protocol"
	refusedState    = "state"
)

var errWrongMember = errors.New("another member answers at this address")

// err is a refusal as an error.
func (w welcome) err() error {
	switch w.Refusal {
	case "":
		return nil
	case refusedCluster:
		return fmt.Errorf("%w: %s", ErrCluster, w.Detail)
	case refusedRemoved:
		return ErrRemoved
	case refusedMember:
		return fmt.Errorf("%w: %s", errWrongMember, w.Detail)
	case refusedState:
		return fmt.Errorf("%w: %s", ErrNoSnapshotter, w.Detail)
	}
	return fmt.Errorf("refused: %s", w.Detail)
}

func writeFrame(w io.Writer, b []byte) error {
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], uint32(len(b)))
	if _, err := w.Write(n[:]); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

func readFrame(r io.Reader, most uint32) ([]byte, error) {
	var n [4]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(n[:])
	if size > most {
		return nil, fmt.Errorf("%w: %d bytes", errFrame, size)
	}
	b := make([]byte, size)
	_, err := io.ReadFull(r, b)
	return b, err
}

func writeJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFrame(w, b)
}

func readJSON(r io.Reader, v any) error {
	b, err := readFrame(r, 4096)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	return nil
}

// connect makes a connection to a member and says hello. wait is how long its welcome may take.
func (t *transport) connect(ctx context.Context, addr string, h hello, wait time.Duration) (net.Conn, *bufio.Reader, welcome, error) {
	dialing, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	fail := func(err error) (net.Conn, *bufio.Reader, welcome, error) {
		return nil, nil, welcome{}, fmt.Errorf("connecting to member %d at %s: %w", h.To, addr, err)
	}
	conn, err := t.dial(dialing, addr)
	if err != nil {
		return fail(err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if t.tls != nil {
		cfg := t.tls.Clone()
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(addr)
		}
		conn = tls.Client(conn, cfg)
	}
	h.Protocol, h.Cluster, h.From, h.Addr = protocol, t.cluster, t.self, t.addr
	conn.SetDeadline(time.Now().Add(handshakeTime))
	if err := writeJSON(conn, h); err != nil {
		conn.Close()
		return fail(err)
	}
	conn.SetDeadline(time.Now().Add(wait))
	var w welcome
	r := bufio.NewReaderSize(conn, 64<<10)
	if err := readJSON(r, &w); err != nil {
		conn.Close()
		return fail(err)
	}
	if err := w.err(); err != nil {
		conn.Close()
		return fail(err)
	}
	conn.SetDeadline(time.Time{})
	return conn, r, w, nil
}

// judge is the answer to a hello.
func (t *transport) judge(h hello) welcome {
	switch {
	case h.Protocol != protocol:
		return welcome{Refusal: refusedProtocol, Detail: fmt.Sprintf("protocol %d, this member speaks %d", h.Protocol, protocol)}
	case h.Cluster != t.cluster:
		return welcome{Refusal: refusedCluster, Detail: fmt.Sprintf("member %d is of cluster %q, not %q", t.self, t.cluster, h.Cluster)}
	case h.To != t.self:
		return welcome{Refusal: refusedMember, Detail: fmt.Sprintf("member %d, not %d", t.self, h.To)}
	case t.isRemoved(h.From):
		return welcome{Refusal: refusedRemoved}
	}
	return welcome{}
}
