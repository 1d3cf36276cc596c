package live

import "encoding/json"

// Kinds of messages: the names of the server-sent events.
const (
	KindState   = "state"   // a State: forget all before it
	KindTrial   = "trial"   // a Trial: as it is at present
	KindSecond  = "second"  // a record.Second
	KindNodes   = "nodes"   // a list of record.NodeSecond, of one second
	KindNetwork = "network" // a record.NetworkSecond
	KindLinks   = "links"   // a list of Link: those that have changed
	KindEvent   = "event"   // a record.Event
	KindResult  = "result"  // a Result
	KindEnd     = "end"     // nothing comes any more: the run is over
)

// message is one thing told, with its number from 1.
type message struct {
	n    uint64
	kind string
	data []byte
}

// How much of what was told is kept for those who were away for a while.
const (
	backlogMessages = 4096
	backlogBytes    = 4 << 20
)

// backlog keeps the last messages.
type backlog struct {
	messages []message
	bytes    int
	next     uint64 // number of the next one
}

func (b *backlog) add(kind string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b.next++
	b.messages = append(b.messages, message{b.next, kind, data})
	b.bytes += len(data)
	drop := 0
	for drop < len(b.messages)-1 && (len(b.messages)-drop > backlogMessages || b.bytes > backlogBytes) {
		b.bytes -= len(b.messages[drop].data)
		drop++
	}
	if drop > 0 {
		clear(b.messages[:drop]) // their data can go
		b.messages = b.messages[drop:]
	}
	return nil
}

// after returns what came after message n; ok tells that nothing of it is missing.
func (b *backlog) after(n uint64) (rest []message, ok bool) {
	if n > b.next {
		return nil, false
	}
	if missed := b.next - n; missed <= uint64(len(b.messages)) {
		return b.messages[uint64(len(b.messages))-missed:], true
	}
	return nil, false
}
