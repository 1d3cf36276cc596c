package consensus

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"skerry/internal/base/dialtls"
)

const (
	protocol = 1
	// maxFrame bounds what a peer can make this member allocate: a raft message has 512 KiB of entries, or one entry.
	maxFrame      = MaxEntry + 2<<20
	handshakeTime = 5 * time.Second
)

// hello is the first frame of a connection, from the side that made it.
type hello struct {
	Protocol int    `json:"protocol"`
	Cluster  string `json:"cluster"`
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	// Names is true if the sender's version names logs. Log is the name of its own log, "" if it has none yet.
	Names bool   `json:"names,omitempty"`
	Log   string `json:"log,omitempty"`
	// Tells is true if the sender's version has frames of kind subscribe and notify.
	Tells bool   `json:"tells,omitempty"`
	Addr  string `json:"addr"`
	// Snapshot asks for a state at this index or later. It is 0 for a connection for messages.
	Snapshot uint64 `json:"snapshot,omitempty"`
}

type welcome struct {
	// Refusal is the reason of a refusal, "" if the connection is accepted.
	Refusal string `json:"refusal,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Log is the name of the log of the answering member, "" if it has none yet.
	Log   string `json:"log,omitempty"`
	Index uint64 `json:"index,omitempty"`
}

const (
	refusedCluster  = "cluster"
	refusedMember   = "member"
	refusedRemoved  = "removed"
	refusedProtocol = "protocol"
	refusedLog      = "log"
	refusedState    = "state"
)

var errWrongMember = errors.New("another member answers at this address")

func (w welcome) err() error {
	switch w.Refusal {
	case "":
		return nil
	case refusedCluster:
		return fmt.Errorf("%w: %s", ErrCluster, w.Detail)
	case refusedLog:
		return fmt.Errorf("%w: %s", ErrLog, w.Detail)
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
	if t.secure != nil {
		conn = dialtls.Client(conn, addr, t.secure())
	}
	h.Protocol, h.Cluster, h.From, h.Addr, h.Names, h.Log, h.Tells = protocol, t.cluster, t.self, t.addr, true, t.log(), true
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

// log returns the name of this member's log, "" if it has none yet.
func (t *transport) log() string {
	name, _ := t.name.Load().(string)
	return name
}

func (t *transport) answerHello(h hello) welcome {
	switch {
	case h.Protocol != protocol:
		return welcome{Refusal: refusedProtocol, Detail: fmt.Sprintf("protocol %d, this member speaks %d", h.Protocol, protocol)}
	case h.Cluster != t.cluster:
		return welcome{Refusal: refusedCluster, Detail: fmt.Sprintf("member %d is of cluster %q, not %q", t.self, t.cluster, h.Cluster)}
	case t.isForeignLog(h.Log):
		return welcome{Refusal: refusedLog, Detail: fmt.Sprintf("member %d has the log %s, not %s", t.self, t.log(), h.Log)}
	case h.To != t.self:
		return welcome{Refusal: refusedMember, Detail: fmt.Sprintf("member %d, not %d", t.self, h.To)}
	case t.isRemoved(h.From):
		return welcome{Refusal: refusedRemoved}
	}
	return welcome{Log: t.log()}
}

// isForeignLog reports whether log names another log than this member's. It is unknown as long as one of the two has no
// name. Both sides of a connection therefore check again with every frame:
//
//  1. Members 1 and 2 have lost their disks and begin a new log. Member 3 has kept log A, and connects before they have
//     agreed on a name: they cannot refuse it.
//  2. They name their log B. If the connections lasted, member 3 would receive entries of B in the positions of entries
//     of A that it has acknowledged.
func (t *transport) isForeignLog(log string) bool {
	own := t.log()
	return log != "" && own != "" && log != own
}
