package live

import "encoding/json"

// Kind is a kind of message: the name of the server-sent event.
type Kind string

// The kinds.
const (
	KindState      Kind = "state"      // a State: forget all before it
	KindTrial      Kind = "trial"      // a Trial: as it is at present
	KindSecond     Kind = "second"     // a record.Second
	KindOperations Kind = "operations" // a list of record.OperationSecond, of one second
	KindPools      Kind = "pools"      // a list of record.PoolSecond, of one second
	KindErrors     Kind = "errors"     // a list of record.ErrorSecond, of one second
	KindNodes      Kind = "nodes"      // a list of record.NodeSecond, of one second
	KindNetwork    Kind = "network"    // a record.NetworkSecond
	KindLinks      Kind = "links"      // a list of Link: those that have changed
	KindEvent      Kind = "event"      // a record.Event
	KindResult     Kind = "result"     // a Result
	KindDoubts     Kind = "doubts"     // a list of doubt.Doubt: all of the run's
	KindTasks      Kind = "tasks"      // a Tasks: as they are at present
	KindEnd        Kind = "end"        // nothing comes any more: the run is over
)

// message is one thing told, with its number from 1.
type message struct {
	n    uint64
	kind Kind
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

func (b *backlog) add(kind Kind, v any) error {
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
