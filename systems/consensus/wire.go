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

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"skerry/internal/base/dialtls"
	"skerry/internal/base/varint"
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
	// Log is the name of the sender's log, "" if it has none yet.
	Log  string `json:"log,omitempty"`
	Addr string `json:"addr"`
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
	conn, err := (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext(dialing, "tcp", addr)
	if err != nil {
		return fail(err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if t.secure != nil {
		conn = dialtls.Client(conn, addr, t.secure())
	}
	h.Protocol, h.Cluster, h.From, h.Addr, h.Log = protocol, t.cluster, t.self, t.addr, t.log()
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

// Frames between members: one byte of kind, then
//
//	raft      the raft library's protobuf message
//	forward   term, epoch, low; then per item: seq, attempt, conf (0 or 1), length, data
//	refusal   term, epoch; then per item: seq, attempt, length, reason
//	transfer  the member to lead
//	ping      a heartbeat, see ping
//	pong      the answer
//	subscribe no content, see Subscribe
//	notify    no content
//
// with all numbers as unsigned varints.
type frameKind byte

const (
	frameRaft frameKind = iota + 1
	frameForward
	frameRefusal
	frameTransfer
	framePing
	framePong
	frameSubscribe
	frameNotify
)

var errFrame = errors.New("malformed frame")

func encodeMessage(m message) ([]byte, error) {
	switch {
	case m.raft != nil:
		size := proto.Size(m.raft)
		b := append(make([]byte, 0, size+1), byte(frameRaft))
		b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m.raft)
		if err != nil {
			return nil, fmt.Errorf("encoding a raft message: %w", err)
		}
		return b, nil
	case m.forward != nil:
		f := m.forward
		size := 40
		for _, it := range f.items {
			size += len(it.data) + 24
		}
		b := append(make([]byte, 0, size), byte(frameForward))
		b = varint.Append(b, f.term, f.epoch, f.low)
		for _, it := range f.items {
			conf := uint64(0)
			if it.conf {
				conf = 1
			}
			b = varint.AppendText(varint.Append(b, it.seq, it.attempt, conf), it.data)
		}
		return b, nil
	case m.refusal != nil:
		b := varint.Append([]byte{byte(frameRefusal)}, m.refusal.term, m.refusal.epoch)
		for _, it := range m.refusal.items {
			b = varint.AppendText(varint.Append(b, it.seq, it.attempt), it.reason)
		}
		return b, nil
	case m.ping != nil:
		p := m.ping
		return varint.Append([]byte{byte(framePing)}, uint64(p.sent), p.applied, uint64(p.election), p.term, p.dropped), nil
	case m.pong != 0:
		return varint.Append([]byte{byte(framePong)}, uint64(m.pong)), nil
	case m.note != 0:
		return []byte{byte(m.note)}, nil
	}
	return varint.Append([]byte{byte(frameTransfer)}, m.transfer), nil
}

// decodeMessage reads the frame of a message to member to. The result refers to b.
func decodeMessage(to uint64, b []byte) (message, error) {
	if len(b) == 0 {
		return message{}, errFrame
	}
	m := message{to: to}
	r := varint.NewReader(b[1:])
	switch frameKind(b[0]) {
	case frameRaft:
		m.raft = &raftpb.Message{}
		if err := proto.Unmarshal(b[1:], m.raft); err != nil {
			return message{}, fmt.Errorf("%w: %w", errFrame, err)
		}
		return m, nil
	case frameForward:
		m.forward = &forward{term: r.Number(), epoch: r.Number(), low: r.Number()}
		for r.More() {
			m.forward.items = append(m.forward.items, item{seq: r.Number(), attempt: r.Number(), conf: r.Number() == 1, data: r.Bytes()})
		}
	case frameRefusal:
		m.refusal = &refusal{term: r.Number(), epoch: r.Number()}
		for r.More() {
			m.refusal.items = append(m.refusal.items, refused{seq: r.Number(), attempt: r.Number(), reason: r.Text()})
		}
	case frameTransfer:
		m.transfer = r.Number()
	case framePing:
		m.ping = &ping{sent: int64(r.Number()), applied: r.Number(), election: int64(r.Number()), term: r.Number(), dropped: r.Number()}
	case framePong:
		m.pong = int64(r.Number())
	case frameSubscribe, frameNotify:
		m.note = frameKind(b[0])
	default:
		return message{}, fmt.Errorf("%w: kind %d", errFrame, b[0])
	}
	if r.Bad() {
		return message{}, errFrame
	}
	return m, nil
}
