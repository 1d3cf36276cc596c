package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Frames between members: one byte of kind, then
//
//	raft      the raft library's protobuf message
//	forward   term, epoch, low; then per item: seq, attempt, conf (0 or 1), length, data
//	refusal   term, epoch; then per item: seq, attempt, length, reason
//	transfer  the member to lead
//	ping      a heartbeat, see ping
//	pong      the answer
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
)

var errFrame = errors.New("malformed frame")

// encodeMessage is the frame of a message of a machine.
func encodeMessage(m message) ([]byte, error) {
	u := binary.AppendUvarint
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
		b = u(u(u(b, f.term), f.epoch), f.low)
		for _, it := range f.items {
			conf := uint64(0)
			if it.conf {
				conf = 1
			}
			b = u(u(u(u(b, it.seq), it.attempt), conf), uint64(len(it.data)))
			b = append(b, it.data...)
		}
		return b, nil
	case m.refusal != nil:
		b := u(u([]byte{byte(frameRefusal)}, m.refusal.term), m.refusal.epoch)
		for _, it := range m.refusal.items {
			b = u(u(u(b, it.seq), it.attempt), uint64(len(it.reason)))
			b = append(b, it.reason...)
		}
		return b, nil
	}
	return u([]byte{byte(frameTransfer)}, m.transfer), nil
}

// decoder reads numbers and bytes until something is amiss.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

// decodeMessage reads the frame of a message to member to. What it returns refers to b.
func decodeMessage(to uint64, b []byte) (message, error) {
	if len(b) == 0 {
		return message{}, errFrame
	}
	m := message{to: to}
	d := &decoder{b: b[1:]}
	switch frameKind(b[0]) {
	case frameRaft:
		m.raft = &raftpb.Message{}
		if err := proto.Unmarshal(b[1:], m.raft); err != nil {
			return message{}, fmt.Errorf("%w: %w", errFrame, err)
		}
		return m, nil
	case frameForward:
		m.forward = &forward{term: d.number(), epoch: d.number(), low: d.number()}
		for len(d.b) > 0 {
			m.forward.items = append(m.forward.items, item{seq: d.number(), attempt: d.number(), conf: d.number() == 1, data: d.bytes()})
		}
	case frameRefusal:
		m.refusal = &refusal{term: d.number(), epoch: d.number()}
		for len(d.b) > 0 {
			m.refusal.items = append(m.refusal.items, refused{seq: d.number(), attempt: d.number(), reason: string(d.bytes())})
		}
	case frameTransfer:
		m.transfer = d.number()
	default:
		return message{}, fmt.Errorf("%w: kind %d", errFrame, b[0])
	}
	if d.bad {
		return message{}, errFrame
	}
	return m, nil
}
