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
	// maxWaiting is the number of queued bytes at which senders block.
	maxWaiting = 1 << 20
	keepBuffer = 256 << 10
	// maxTogether is the number of requests per batch. The other side answers a batch in turn; use more connections.
	maxTogether = 32
	writeTime   = 10 * time.Second
)

// ErrNotSent means that the connection had failed before the frame was sent.
var ErrNotSent = errors.New("stream has ended")

// Outbox combines frames of many goroutines into few writes. A sender that finds no write in progress
// writes, including the frames that others add meanwhile.
type Outbox struct {
	conn net.Conn
	// OnBatch, if set, is called once per batch of requests, when the batch is closed. It must not use the Outbox.
	OnBatch func()

	mu         sync.Mutex
	batch      int // queued requests since the last call of OnBatch
	spaceFreed sync.Cond
	buf        []byte
	spare      []byte
	writing    bool
	err        error
}

func NewOutbox(conn net.Conn) *Outbox {
	o := &Outbox{conn: conn}
	o.spaceFreed.L = &o.mu
	return o
}

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

func (o *Outbox) endBatch() {
	if o.batch > 0 && o.OnBatch != nil {
		o.OnBatch()
	}
	o.batch = 0
}

// AddAnswer queues an answer until the next Flush.
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

// Flush sends the queued frames.
func (o *Outbox) Flush() error {
	o.mu.Lock()
	return o.flush()
}

// begin locks o.mu, unless it returns an error.
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

// flush unlocks o.mu. The next sender gets the error of another goroutine's write.
func (o *Outbox) flush() error {
	if o.writing || len(o.buf) == 0 {
		o.mu.Unlock()
		return nil
	}
	o.writing = true
	o.mu.Unlock()
	runtime.Gosched() // let other senders add frames
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

// Fail makes all senders return err.
func (o *Outbox) Fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	o.spaceFreed.Broadcast()
}

const bufferSize = 32 << 10

// Reader reads frames from a connection, for one goroutine.
type Reader struct {
	r *bufio.Reader
	// room bounds the memory of long frames, deadline the arrival of one; nil for a trusted other side.
	room     *bodylimit.Budget
	deadline func(time.Time) error
	patience time.Duration

	held int64 // bytes of room used by the current frame
	long bool  // the current frame exceeds r's buffer
}

func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, bufferSize)}
}

// SetLimits bounds the memory of long frames by room, and the arrival of one by patience. deadline
// sets the connection's read deadline, the zero time for none.
func (r *Reader) SetLimits(room *bodylimit.Budget, patience time.Duration, deadline func(time.Time) error) *Reader {
	r.room, r.patience, r.deadline = room, patience, deadline
	return r
}

// Long reports whether the current frame belongs to the caller, and how many bytes of the room it must give back.
func (r *Reader) Long() (held int64, long bool) { return r.held, r.long }

// Next returns the content of the next frame. It is valid until the next call, unless the frame is Long.
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
		_, _ = r.r.Discard(4 + n) // peeked
		return b[4:], nil
	}
	_, _ = r.r.Discard(4)
	r.long = true
	return r.readLong(int64(n))
}

func (r *Reader) readLong(n int64) (b []byte, err error) {
	if r.room == nil {
		b, _, err = bodylimit.NewBudget(2*MaxFrame).Read(r.r, n)
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

func asUnexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// HasFrame reports whether a complete frame is buffered.
func (r *Reader) HasFrame() bool {
	n := r.r.Buffered()
	if n < 4 {
		return false
	}
	head, err := r.r.Peek(4)
	return err == nil && n-4 >= int(binary.LittleEndian.Uint32(head))
}
