package consensus

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"skerry/internal/base/varint"
)

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
	}
	if m.note != 0 {
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
