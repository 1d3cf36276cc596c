package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// pingEvery is the interval of pings, so that a browser soon notices a lost connection.
const pingEvery = 5 * time.Second

// Follow writes messages as server-sent events until ctx ends or the run is over. It starts after the
// message with the ID, or with the whole state if that message is unknown or dropped. flush is called after
// each batch.
func (f *Feed) Follow(ctx context.Context, id string, w io.Writer, flush func() error) error {
	n, known := f.parseID(id)
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		rest, next, changed, over, err := f.since(n, known)
		if err != nil {
			return err
		}
		for _, m := range rest {
			if _, err := fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", f.formatID(m.n), m.kind, m.data); err != nil {
				return err
			}
		}
		n, known = next, true
		if err := flush(); err != nil || over {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-ping.C:
			if _, err := io.WriteString(w, "event: ping\ndata: {}\n\n"); err != nil {
				return err
			}
		}
	}
}

// parseID returns the message number; known is false for IDs of another feed.
func (f *Feed) parseID(id string) (n uint64, known bool) {
	epoch, count, ok := strings.Cut(id, ".")
	if !ok || epoch != f.epoch {
		return 0, false
	}
	n, err := strconv.ParseUint(count, 10, 64)
	return n, err == nil
}

// since returns the messages after number n, or the whole state instead, and a channel that is closed when
// there are more.
func (f *Feed) since(n uint64, known bool) (rest []message, next uint64, changed <-chan struct{}, over bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ok := false
	if known {
		rest, ok = f.log.after(n)
	}
	if !ok {
		state, err := json.Marshal(f.state)
		if err != nil {
			return nil, 0, nil, false, err
		}
		rest = []message{{f.log.next, KindState, state}}
		if f.closed {
			rest = append(rest, message{f.log.next, KindEnd, []byte("{}")})
		}
	}
	return rest, f.log.next, f.changed, f.closed, nil
}

// Kind is a kind of message: the name of the server-sent event.
type Kind string

const (
	KindState      Kind = "state"      // a State, which replaces everything before it
	KindTrial      Kind = "trial"      // the current Trial
	KindSecond     Kind = "second"     // a record.Second
	KindOperations Kind = "operations" // a list of record.OperationSecond, of one second
	KindPools      Kind = "pools"      // a list of record.PoolSecond, of one second
	KindErrors     Kind = "errors"     // a list of record.ErrorSecond, of one second
	KindNodes      Kind = "nodes"      // a list of record.NodeSecond, of one second
	KindNetwork    Kind = "network"    // a record.NetworkSecond
	KindLinks      Kind = "links"      // a list of Link: those that have changed
	KindEvent      Kind = "event"      // a record.Event
	KindResult     Kind = "result"     // a Result
	KindDoubts     Kind = "doubts"     // a list of warnings.Doubt: all of the run's
	KindTasks      Kind = "tasks"      // the current Tasks
	KindEnd        Kind = "end"        // the run is over; the last message
)

// message is a published message, numbered from 1.
type message struct {
	n    uint64
	kind Kind
	data []byte
}

// Limits of the backlog for followers that were disconnected.
const (
	backlogMessages = 4096
	backlogBytes    = 4 << 20
)

// backlog holds the last messages.
type backlog struct {
	messages []message
	bytes    int
	next     uint64 // number of the last message
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
		clear(b.messages[:drop]) // release their data
		b.messages = b.messages[drop:]
	}
	return nil
}

// after returns the messages after number n; ok is false if some of them were dropped.
func (b *backlog) after(n uint64) (rest []message, ok bool) {
	if n > b.next {
		return nil, false
	}
	if missed := b.next - n; missed <= uint64(len(b.messages)) {
		return b.messages[uint64(len(b.messages))-missed:], true
	}
	return nil, false
}
