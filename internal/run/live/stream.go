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

// pingEvery is how often an onlooker hears that the feed is there although nothing happens:
// often enough for a browser to notice soon that it lost it while it slept.
const pingEvery = 5 * time.Second

// Follow writes messages as server-sent events, beginning after the message with the id, ""
// for from the start, until ctx ends or the run is over. Who missed more than is kept is told
// the whole state first. flush is called when there is nothing more to write for now.
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

// parseID is that of the message with an id; not known is one of another feed.
func (f *Feed) parseID(id string) (n uint64, known bool) {
	epoch, count, ok := strings.Cut(id, ".")
	if !ok || epoch != f.epoch {
		return 0, false
	}
	n, err := strconv.ParseUint(count, 10, 64)
	return n, err == nil
}

// since returns what came after message n, in its place the state, and what is closed when
// there is more.
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
