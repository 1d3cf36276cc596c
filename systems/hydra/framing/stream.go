package framing

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"skerry/internal/base/bodylimit"
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
	OnBatch func()

	mu         sync.Mutex
	batch      int // requests that wait, since the last call of Leaves
	spaceFreed sync.Cond
	buf        []byte
	spare      []byte
	writing    bool
	err        error
}

// NewOutbox sends on conn.
func NewOutbox(conn net.Conn) *Outbox {
	o := &Outbox{conn: conn}
	o.spaceFreed.L = &o.mu
	return o
}

// SendRequest sends a request.
func (o *Outbox) SendRequest(q *Request) error {
	if err := o.begin(); err != nil {
		return err
	}
	o.buf = AppendRequest(o.buf, q)
	if o.batch++; o.batch == maxTogether {
		o.endBatch()
	}
	return o.flush()
}

// endBatch ends a lot; mu is held.
func (o *Outbox) endBatch() {
	if o.batch > 0 && o.OnBatch != nil {
		o.OnBatch()
	}
	o.batch = 0
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
		o.spaceFreed.Wait()
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
		o.endBatch()
		b := o.buf
		o.buf, o.spare = o.spare[:0], nil
		o.spaceFreed.Broadcast()
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
			o.spaceFreed.Broadcast()
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
	o.spaceFreed.Broadcast()
}

// bufferSize is how much of what the other side has sent one read brings.
const bufferSize = 32 << 10

// Reader takes frames from a connection. It is for one goroutine.
type Reader struct {
	r *bufio.Reader
	// room is what long frames of all readers hold together, and deadline bounds the arrival of
	// one that has begun; nil for a reader that trusts the other side.
	room     *bodylimit.Room
	deadline func(time.Time) error
	patience time.Duration

	held int64 // of room, for the frame that Next has returned
	long bool  // it is longer than r's buffer
}

// NewReader reads from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, bufferSize)}
}

// SetLimits bounds what long frames hold until they are given back, by what all of a room do, and how
// long one may take to arrive that has begun, by what sets its connection's deadline (the zero time
// for none).
func (r *Reader) SetLimits(room *bodylimit.Room, patience time.Duration, deadline func(time.Time) error) *Reader {
	r.room, r.patience, r.deadline = room, patience, deadline
	return r
}

// Long tells whether the frame that Next has returned is the caller's to keep, and how much of
// the room it has then to give back.
func (r *Reader) Long() (held int64, long bool) { return r.held, r.long }

// Next returns the content of the next frame, which is good until the call after it where it is
// not Long.
func (r *Reader) Next() ([]byte, error) {
	r.held, r.long = 0, false
	head, err := r.r.Peek(4)
	if err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(head))
	if n > MaxFrame {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrFrame, n, MaxFrame)
	}
	if n <= bufferSize-4 {
		b, err := r.r.Peek(4 + n)
		if err != nil {
			return nil, asUnexpectedEOF(err)
		}
		_, _ = r.r.Discard(4 + n) // it was peeked at
		return b[4:], nil
	}
	_, _ = r.r.Discard(4)
	r.long = true
	return r.readLong(int64(n))
}

// readLong reads a long frame as it comes.
func (r *Reader) readLong(n int64) (b []byte, err error) {
	if r.room == nil {
		b, _, err = bodylimit.NewRoom(2*MaxFrame).Read(r.r, n)
		return b, err
	}
	if err := r.deadline(time.Now().Add(r.patience)); err != nil {
		return nil, err
	}
	b, r.held, err = r.room.Read(r.r, n)
	if err == nil {
		err = r.deadline(time.Time{})
	}
	return b, err
}

// asUnexpectedEOF tells an end within a frame from one behind it.
func asUnexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// HasFrame tells whether a whole frame is there already.
func (r *Reader) HasFrame() bool {
	n := r.r.Buffered()
	if n < 4 {
		return false
	}
	head, err := r.r.Peek(4)
	return err == nil && n-4 >= int(binary.LittleEndian.Uint32(head))
}
