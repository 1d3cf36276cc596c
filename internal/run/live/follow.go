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
	n, known := f.number(id)
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		rest, next, changed, over, err := f.since(n, known)
		if err != nil {
			return err
		}
		for _, m := range rest {
			if _, err := fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", f.id(m.n), m.kind, m.data); err != nil {
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

// number is that of the message with an id; not known is one of another feed.
func (f *Feed) number(id string) (n uint64, known bool) {
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
		if f.over {
			rest = append(rest, message{f.log.next, KindEnd, []byte("{}")})
		}
	}
	return rest, f.log.next, f.changed, f.over, nil
}
