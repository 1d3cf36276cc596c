package framing

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"
)

const (
	// maxWaiting is how many bytes wait for a connection that takes them slowly before
	// senders wait too.
	maxWaiting = 1 << 20
	// keepBuffer is up to what size a buffer is used again.
	keepBuffer = 256 << 10
	// maxTogether is how many requests go out together before those that follow should go
	// another way: the other side answers them one after the other.
	maxTogether = 32
	// writeTime is after how long a connection that takes nothing is given up.
	writeTime = 10 * time.Second
)

// ErrNotSent says that a frame did not go out: the connection had failed before.
var ErrNotSent = errors.New("the stream has ended")

// Outbox sends frames of many goroutines on one connection. Whoever finds nobody writing
// writes, and takes along what others add meanwhile.
type Outbox struct {
	conn net.Conn
	// Leaves, when set, is called once for each lot of requests, when it takes no more. It must not
	// use the Outbox.
	Leaves func()

	mu      sync.Mutex
	lot     int // requests that wait, since the last call of Leaves
	room    sync.Cond
	buf     []byte
	spare   []byte
	writing bool
	err     error
}

// NewOutbox sends on conn.
func NewOutbox(conn net.Conn) *Outbox {
	o := &Outbox{conn: conn}
	o.room.L = &o.mu
	return o
}

// SendRequest sends a request.
func (o *Outbox) SendRequest(q *Request) error {
	if err := o.begin(); err != nil {
		return err
	}
	o.buf = AppendRequest(o.buf, q)
	if o.lot++; o.lot == maxTogether {
		o.leave()
	}
	return o.flush()
}

// leave ends a lot; mu is held.
func (o *Outbox) leave() {
	if o.lot > 0 && o.Leaves != nil {
		o.Leaves()
	}
	o.lot = 0
}

// SendAnswer sends an answer, with those that were added before.
func (o *Outbox) SendAnswer(a *Answer) error {
	if err := o.begin(); err != nil {
		return err
	}
	o.buf = AppendAnswer(o.buf, a)
	return o.flush()
}

// AddAnswer leaves an answer to the next that is sent, or to Flush.
func (o *Outbox) AddAnswer(a *Answer) error {
	if err := o.begin(); err != nil {
		return err
	}
	o.buf = AppendAnswer(o.buf, a)
	if len(o.buf) >= keepBuffer {
		return o.flush()
	}
	o.mu.Unlock()
	return nil
}

// Flush sends what was added.
func (o *Outbox) Flush() error {
	o.mu.Lock()
	return o.flush()
}

// begin returns with mu held, unless with an error.
func (o *Outbox) begin() error {
	o.mu.Lock()
	for len(o.buf) >= maxWaiting && o.writing && o.err == nil {
		o.room.Wait()
	}
	if o.err != nil {
		defer o.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrNotSent, o.err)
	}
	return nil
}

// flush is called with mu held and returns without. An error of another one's write is
// told to whoever sends next.
func (o *Outbox) flush() error {
	if o.writing || len(o.buf) == 0 {
		o.mu.Unlock()
		return nil
	}
	o.writing = true
	o.mu.Unlock()
	runtime.Gosched() // whoever is about to send comes along
	o.mu.Lock()
	for len(o.buf) > 0 && o.err == nil {
		o.leave()
		b := o.buf
		o.buf, o.spare = o.spare[:0], nil
		o.room.Broadcast()
		o.mu.Unlock()
		err := o.conn.SetWriteDeadline(time.Now().Add(writeTime))
		if err == nil {
			_, err = o.conn.Write(b)
		}
		o.mu.Lock()
		if cap(b) <= keepBuffer {
			o.spare = b
		}
		if err != nil {
			o.err = err
			o.room.Broadcast()
		}
	}
	o.writing = false
	err := o.err
	o.mu.Unlock()
	return err
}

// Fail has all that send get an error.
func (o *Outbox) Fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	o.room.Broadcast()
}
